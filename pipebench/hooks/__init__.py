"""The plugin host: what plugins declare, how they are found, and the context of their calls."""

import pluggy

API_VERSION = 1
"""Version of the hook API. A plugin module states `PIPEBENCH_API = 1`, the version it was written for."""

hookimpl = pluggy.HookimplMarker("pipebench")
"""Marks a plugin's implementation of a hook."""
