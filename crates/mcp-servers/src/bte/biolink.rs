//! Terms of the Biolink model (<https://biolink.github.io/biolink-model/>) that the tools use.

use crate::graph::model::{is_node_id, strip_biolink};

/// The predicates of the queries that the tools `query_bte_getall` and `query_bte_by_categories`
/// send.
pub(super) const PREDICATES: [&str; 6] = [
    "biolink:affected_by",
    "biolink:affects",
    "biolink:interacts_with",
    "biolink:participates_in",
    "biolink:derives_from",
    "biolink:derives_into",
];

/// The predicate of edges that state only that two names occur in the same text. Such edges are
/// ignored, because they would outnumber all others.
pub(super) const CO_OCCURRENCE: &str = "biolink:occurs_together_in_literature_with";

/// The categories that the tool `query_bte_getall` searches. It splits the list into several
/// queries, in this order. The tool `query_bte_by_categories` accepts only these categories.
pub(super) const CATEGORIES: [&str; 11] = [
    "biolink:BiologicalProcessOrActivity",
    "biolink:Gene",
    "biolink:Protein",
    "biolink:GeneFamily",
    "biolink:DiseaseOrPhenotypicFeature",
    "biolink:AnatomicalEntity",
    "biolink:RNAProduct",
    "biolink:ChemicalMixture",
    "biolink:SmallMolecule",
    "biolink:Polypeptide",
    "biolink:ProteinFamily",
];

/// Adds the prefix `biolink:` to a category if it is missing, because TRAPI requires the prefix.
/// Returns `None` for an invalid category name.
pub(super) fn normalize_category(text: &str) -> Option<String> {
    let name = strip_biolink(text);
    let mut characters = name.chars();
    let is_valid = characters.next().is_some_and(|it| it.is_ascii_uppercase())
        && characters.all(|it| it.is_ascii_alphabetic());
    is_valid.then(|| format!("biolink:{name}"))
}

/// Adds the prefix `biolink:` to a predicate if it is missing, because TRAPI requires the prefix.
/// Returns `None` for an invalid predicate name.
pub(super) fn normalize_predicate(text: &str) -> Option<String> {
    let name = strip_biolink(text);
    let mut characters = name.chars();
    let is_valid = characters.next().is_some_and(|it| it.is_ascii_lowercase())
        && characters.all(|it| it.is_ascii_lowercase() || it == '_');
    is_valid.then(|| format!("biolink:{name}"))
}

/// Returns whether a text is a CURIE (compact URI): a prefix, a colon and a local id.
pub(super) fn is_curie(text: &str) -> bool {
    let Some((prefix, reference)) = text.split_once(':') else {
        return false;
    };
    let in_prefix = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    !prefix.is_empty() && prefix.chars().all(in_prefix) && !reference.is_empty() && is_node_id(text)
}
