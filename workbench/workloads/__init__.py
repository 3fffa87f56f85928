"""Generated traffic: what stands under `workload:` in a scenario, and the requests that it stands for."""

from workbench.workloads.chat import Chat
from workbench.workloads.kinds import KINDS, Maker, Traffic, Upload, Uploads, Workload, read

__all__ = ["KINDS", "Chat", "Maker", "Traffic", "Upload", "Uploads", "Workload", "read"]
