"""Octet on a Ray cluster: samples run in shards, and their statistics merge exactly."""

from .calibration import Calibration, Comparison, calibrate, compare
from .errors import OctetRayError
from .samples import FolderSamples, ShippedSamples

__all__ = [
    "Calibration",
    "Comparison",
    "FolderSamples",
    "OctetRayError",
    "ShippedSamples",
    "calibrate",
    "compare",
]
