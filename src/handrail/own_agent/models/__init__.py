"""Model providers: catalogue, credentials, requests."""
