"""The HTTP API, one module per noun."""
