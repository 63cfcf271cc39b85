"""Measuring voxglove beside its peers; README.md here, docs/bench.md. Nothing of it ships."""
