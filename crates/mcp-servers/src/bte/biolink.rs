//! The words of the Biolink model (<https://biolink.github.io/biolink-model/>) that the tools use.

use schemars::JsonSchema;
use serde::Deserialize;

/// The predicates of `query_bte_getall` and `query_bte_by_categories`: those that say something
/// about mechanisms, and not the general `associated_with`.
pub(super) const PREDICATES: [&str; 6] = [
    "biolink:affected_by",
    "biolink:affects",
    "biolink:interacts_with",
    "biolink:participates_in",
    "biolink:derives_from",
    "biolink:derives_into",
];

/// Edges with this predicate say only that two names occur near each other in texts. They would
/// drown all others, so they are left out.
pub(super) const CO_OCCURRENCE: &str = "biolink:occurs_together_in_literature_with";

/// What `query_bte_getall` looks for.
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
    /// All of them, in the order in which they are asked for.
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

    /// As the Biolink model writes it.
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

/// A category as TRAPI wants it (`biolink:Gene`), also from `Gene`; none if it cannot be one.
pub(super) fn category(text: &str) -> Option<String> {
    let name = crate::graph::model::plain(text);
    let mut characters = name.chars();
    let fits = characters.next().is_some_and(|it| it.is_ascii_uppercase())
        && characters.all(|it| it.is_ascii_alphabetic());
    fits.then(|| format!("biolink:{name}"))
}

/// A predicate as TRAPI wants it (`biolink:affects`), also from `affects`; none if it cannot be one.
pub(super) fn predicate(text: &str) -> Option<String> {
    let name = crate::graph::model::plain(text);
    let mut characters = name.chars();
    let fits = characters.next().is_some_and(|it| it.is_ascii_lowercase())
        && characters.all(|it| it.is_ascii_lowercase() || it == '_');
    fits.then(|| format!("biolink:{name}"))
}

/// Whether this is a CURIE: a prefix, a colon, and what it is called there.
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
    fn the_prefix_may_be_left_out_and_the_form_is_checked() {
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
    fn names_are_told_from_curies() {
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
    fn every_category_is_written_like_the_model_writes_it() {
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
