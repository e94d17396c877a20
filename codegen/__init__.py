"""The generator: reads upstream's data and our claims, writes C++ (see docs/building.md)."""
