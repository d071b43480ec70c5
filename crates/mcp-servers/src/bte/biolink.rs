//! Terms of the Biolink model (<https://biolink.github.io/biolink-model/>) that the tools use.

use schemars::JsonSchema;
use serde::Deserialize;

/// The predicates of `query_bte_getall` and `query_bte_by_categories`. They describe mechanisms,
/// other than the general `associated_with`.
pub(super) const PREDICATES: [&str; 6] = [
    "biolink:affected_by",
    "biolink:affects",
    "biolink:interacts_with",
    "biolink:participates_in",
    "biolink:derives_from",
    "biolink:derives_into",
];

/// The predicate of names that occur in one text. Its edges are ignored, because they would
/// outnumber all others.
pub(super) const CO_OCCURRENCE: &str = "biolink:occurs_together_in_literature_with";

/// A category of `query_bte_getall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Category {
    #[serde(rename = "biolink:BiologicalProcessOrActivity")]
    BiologicalProcessOrActivity,
    #[serde(rename = "biolink:Gene")]
    Gene,
    #[serde(rename = "biolink:Protein")]
    Protein,
    #[serde(rename = "biolink:GeneFamily")]
    GeneFamily,
    #[serde(rename = "biolink:DiseaseOrPhenotypicFeature")]
    DiseaseOrPhenotypicFeature,
    #[serde(rename = "biolink:AnatomicalEntity")]
    AnatomicalEntity,
    #[serde(rename = "biolink:RNAProduct")]
    RnaProduct,
    #[serde(rename = "biolink:ChemicalMixture")]
    ChemicalMixture,
    #[serde(rename = "biolink:SmallMolecule")]
    SmallMolecule,
    #[serde(rename = "biolink:Polypeptide")]
    Polypeptide,
    #[serde(rename = "biolink:ProteinFamily")]
    ProteinFamily,
}

impl Category {
    /// All categories, in the order of the queries.
    pub(super) const ALL: [Self; 11] = [
        Self::BiologicalProcessOrActivity,
        Self::Gene,
        Self::Protein,
        Self::GeneFamily,
        Self::DiseaseOrPhenotypicFeature,
        Self::AnatomicalEntity,
        Self::RnaProduct,
        Self::ChemicalMixture,
        Self::SmallMolecule,
        Self::Polypeptide,
        Self::ProteinFamily,
    ];

    /// Returns the name in the Biolink model.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::BiologicalProcessOrActivity => "biolink:BiologicalProcessOrActivity",
            Self::Gene => "biolink:Gene",
            Self::Protein => "biolink:Protein",
            Self::GeneFamily => "biolink:GeneFamily",
            Self::DiseaseOrPhenotypicFeature => "biolink:DiseaseOrPhenotypicFeature",
            Self::AnatomicalEntity => "biolink:AnatomicalEntity",
            Self::RnaProduct => "biolink:RNAProduct",
            Self::ChemicalMixture => "biolink:ChemicalMixture",
            Self::SmallMolecule => "biolink:SmallMolecule",
            Self::Polypeptide => "biolink:Polypeptide",
            Self::ProteinFamily => "biolink:ProteinFamily",
        }
    }
}

/// Returns a category for TRAPI: `biolink:Gene` for `Gene` and `biolink:Gene`. Returns `None` for
/// another form.
pub(super) fn category(text: &str) -> Option<String> {
    let name = crate::graph::model::without_prefix(text);
    let mut characters = name.chars();
    let is_valid = characters.next().is_some_and(|it| it.is_ascii_uppercase())
        && characters.all(|it| it.is_ascii_alphabetic());
    is_valid.then(|| format!("biolink:{name}"))
}

/// Returns a predicate for TRAPI: `biolink:affects` for `affects` and `biolink:affects`. Returns
/// `None` for another form.
pub(super) fn predicate(text: &str) -> Option<String> {
    let name = crate::graph::model::without_prefix(text);
    let mut characters = name.chars();
    let is_valid = characters.next().is_some_and(|it| it.is_ascii_lowercase())
        && characters.all(|it| it.is_ascii_lowercase() || it == '_');
    is_valid.then(|| format!("biolink:{name}"))
}

/// Returns whether this is a CURIE: a prefix, a colon and a local id.
pub(super) fn is_curie(text: &str) -> bool {
    let Some((prefix, reference)) = text.split_once(':') else {
        return false;
    };
    let in_prefix = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    !prefix.is_empty()
        && prefix.chars().all(in_prefix)
        && !reference.is_empty()
        && crate::graph::model::is_node_id(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_and_predicates_are_validated_with_and_without_prefix() {
        assert_eq!(category("Gene").as_deref(), Some("biolink:Gene"));
        assert_eq!(
            category(" biolink:RNAProduct").as_deref(),
            Some("biolink:RNAProduct")
        );
        for wrong in [
            "",
            "gene",
            "biolink:",
            "Small Molecule",
            "Gene2",
            "biolink:biolink:Gene",
        ] {
            assert_eq!(category(wrong), None, "{wrong}");
        }
        assert_eq!(predicate("affects").as_deref(), Some("biolink:affects"));
        assert_eq!(
            predicate("biolink:has_part").as_deref(),
            Some("biolink:has_part")
        );
        for wrong in ["", "Affects", "biolink:", "has part", "_affects"] {
            assert_eq!(predicate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn curies_are_recognized() {
        for curie in [
            "NCBIGene:4353",
            "CHEMBL.COMPOUND:CHEMBL25",
            "UMLS:C0027061",
            "a:b:c",
        ] {
            assert!(is_curie(curie), "{curie}");
        }
        for name in [
            "MPO",
            "",
            ":4353",
            "NCBIGene:",
            "my gene:1",
            "NCBIGene: 4353",
            "http://a b",
        ] {
            assert!(!is_curie(name), "{name}");
        }
    }

    #[test]
    fn constants_have_the_names_of_the_biolink_model() {
        for it in Category::ALL {
            assert_eq!(category(it.as_str()).as_deref(), Some(it.as_str()));
            let read: Category = serde_json::from_value(it.as_str().into()).unwrap();
            assert_eq!(read, it);
        }
        for it in PREDICATES.into_iter().chain([CO_OCCURRENCE]) {
            assert_eq!(predicate(it).as_deref(), Some(it));
        }
    }
}
