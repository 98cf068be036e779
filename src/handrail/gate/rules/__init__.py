"""Rules: where they come from, which calls they match, and the policy's decision."""
