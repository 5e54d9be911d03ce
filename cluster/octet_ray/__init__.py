"""Octet on a Ray cluster: samples run in shards, and their statistics merge exactly."""

from .calibration import Calibration, Comparison, calibrate, compare
from .errors import OctetRayError
from .samples import FolderSamples, ShippedSamples
from .search import Search, search

__all__ = [
    "Calibration",
    "Comparison",
    "FolderSamples",
    "OctetRayError",
    "Search",
    "ShippedSamples",
    "calibrate",
    "compare",
    "search",
]
