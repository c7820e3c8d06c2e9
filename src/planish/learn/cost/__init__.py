"""Models that predict what candidates cost."""

from planish.learn.cost.combined import Combined
from planish.learn.cost.cost_rows import dataset_of
from planish.learn.cost.ensemble import ACQUISITIONS, Bootstrap, acquire
from planish.learn.cost.gaussian import GaussianProcess
from planish.learn.cost.model import CostModel, Dataset, Decides, LocalModel, Prediction, Predicts
from planish.learn.cost.model_files import load_model, suffix_of, write_model
from planish.learn.cost.model_folder import model_named, models_folder, models_for, places, required
from planish.learn.cost.pooled import Pooled, shares
from planish.learn.cost.saved import SavedModel, made_model
from planish.learn.cost.tree_gru import TreeGru, can_train
from planish.learn.cost.trees import BoostedTrees
from planish.learn.cost.xgboosted import XgboostTrees, can_grow

__all__ = [
    "ACQUISITIONS",
    "BoostedTrees",
    "Bootstrap",
    "Combined",
    "CostModel",
    "Dataset",
    "Decides",
    "GaussianProcess",
    "LocalModel",
    "Pooled",
    "Prediction",
    "Predicts",
    "SavedModel",
    "TreeGru",
    "XgboostTrees",
    "acquire",
    "can_grow",
    "can_train",
    "dataset_of",
    "load_model",
    "made_model",
    "model_named",
    "models_folder",
    "models_for",
    "places",
    "required",
    "shares",
    "suffix_of",
    "write_model",
]
