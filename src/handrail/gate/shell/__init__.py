"""Shell parser: splits a line into its commands, and reports every construct that it cannot fully understand."""
