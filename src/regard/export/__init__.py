"""Runs handed on: in one file of ours, or in the forms of others."""

from regard.export.form import ExportForm
from regard.export.forms import FORMS, export_run

__all__ = ["FORMS", "ExportForm", "export_run"]
