"""Shell parser: splits a line into its commands, and reports constructs it cannot fully understand."""
