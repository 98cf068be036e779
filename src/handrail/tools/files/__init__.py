"""Read and change files: plan a diff, let the person review it, write it atomically."""
