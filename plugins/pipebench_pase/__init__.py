"""PaSE: how to split each operator's iteration space over all devices, and the strategies it is compared with."""
