"""What every backend works with: a checked request, its blocks, and a pass over them."""
