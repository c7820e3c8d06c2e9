"""Convolutions written as products of matrices and as shifted products."""

from planish.hlo.lowering.forms import FORMS, forms_of
from planish.hlo.lowering.plain_convolution import PlainConvolution, plain_convolution

__all__ = ["FORMS", "PlainConvolution", "forms_of", "plain_convolution"]
