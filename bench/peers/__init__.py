"""What Handrail is measured beside: the least program that does a comparable thing."""
