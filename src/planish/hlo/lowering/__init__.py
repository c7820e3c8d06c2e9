"""Convolutions written as products of matrices and as shifted products."""

from planish.hlo.lowering.forms import FORMS, Write, forms_of, ordered
from planish.hlo.lowering.plain_convolution import PlainConvolution, plain_convolution

__all__ = ["FORMS", "PlainConvolution", "Write", "forms_of", "ordered", "plain_convolution"]
