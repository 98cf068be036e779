"""Rules: standing answers, where they come from, and the decision that follows from them."""
