"""The controlled words of topics and risks, as versioned data."""

from convoscope.vocabulary.semantic import RiskType, SemanticVocabulary, semantic_vocabulary

__all__ = ["RiskType", "SemanticVocabulary", "semantic_vocabulary"]
