"""Fewer channels: an axis of some values is cut, and with it all that is tied to it."""

from planish.hlo.width.channels import Channels, channels_of
from planish.hlo.width.cut import kept_channels

__all__ = ["Channels", "channels_of", "kept_channels"]
