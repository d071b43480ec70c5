//! The published schema of TRAPI 1.5.0 for queries and answers, as JSON Schema. Based on
//! `TranslatorReasonerAPI.yaml` at v1.5.0. Additional properties of a query are refused here,
//! unlike in the source, so that misspelled fields are detected.

use jsonschema::Validator;
use serde_json::{Value, json};

/// Checks the body of `POST /query`.
pub(super) fn query() -> Validator {
    let curie = json!({"type": "string", "pattern": "^[^:\\s]+:\\S+$"});
    jsonschema::validator_for(&json!({
        "type": "object",
        "required": ["message"],
        "additionalProperties": false,
        "properties": {
            "message": {
                "type": "object",
                "required": ["query_graph"],
                "additionalProperties": false,
                "properties": {"query_graph": {
                    "type": "object",
                    "required": ["nodes", "edges"],
                    "additionalProperties": false,
                    "properties": {
                        "nodes": {"type": "object", "minProperties": 1, "additionalProperties": {
                            "type": "object",
                            "additionalProperties": false,
                            "properties": {
                                "ids": {"type": ["array", "null"], "minItems": 1, "items": curie},
                                "categories": {"type": ["array", "null"], "minItems": 1, "items": category()},
                                "set_interpretation": {"enum": ["BATCH", "ALL", "MANY", null]},
                                "member_ids": {"type": ["array", "null"], "items": curie},
                                "constraints": {"type": "array"},
                            },
                        }},
                        "edges": {"type": "object", "minProperties": 1, "additionalProperties": {
                            "type": "object",
                            "required": ["subject", "object"],
                            "additionalProperties": false,
                            "properties": {
                                "subject": {"type": "string"},
                                "object": {"type": "string"},
                                "knowledge_type": {"type": ["string", "null"]},
                                "predicates": {"type": ["array", "null"], "minItems": 1, "items": predicate()},
                                "attribute_constraints": {"type": "array"},
                                "qualifier_constraints": {"type": "array"},
                            },
                        }},
                    },
                }},
            },
            "submitter": {"type": ["string", "null"]},
            "log_level": {"enum": ["ERROR", "WARNING", "INFO", "DEBUG", null]},
            "workflow": {"type": ["array", "null"]},
            "bypass_cache": {"type": "boolean"},
        },
    }))
    .unwrap()
}

/// Checks the body of a successful answer.
pub(super) fn response() -> Validator {
    jsonschema::validator_for(&json!({
        "type": "object",
        "required": ["message"],
        "properties": {
            "message": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "query_graph": {"type": ["object", "null"]},
                    "auxiliary_graphs": {"type": ["object", "null"]},
                    "results": {"type": ["array", "null"], "items": result()},
                    "knowledge_graph": {
                        "type": ["object", "null"],
                        "required": ["nodes", "edges"],
                        "properties": {
                            "nodes": {"type": "object", "additionalProperties": node()},
                            "edges": {"type": "object", "additionalProperties": edge()},
                        },
                    },
                },
            },
            "status": {"type": ["string", "null"]},
            "description": {"type": ["string", "null"]},
            "schema_version": {"type": ["string", "null"]},
            "biolink_version": {"type": ["string", "null"]},
            "workflow": {"type": ["array", "null"]},
            "logs": {"type": "array", "items": {
                "type": "object",
                "required": ["timestamp", "message"],
                "properties": {
                    "timestamp": {"type": "string"},
                    "level": {"enum": ["ERROR", "WARNING", "INFO", "DEBUG", null]},
                    "code": {"type": ["string", "null"]},
                    "message": {"type": "string"},
                },
            }},
        },
    }))
    .unwrap()
}

/// Checks the body of `GET /meta_knowledge_graph`.
pub(super) fn meta_knowledge_graph() -> Validator {
    jsonschema::validator_for(&json!({
        "type": "object",
        "required": ["nodes", "edges"],
        "properties": {
            "nodes": {"type": "object", "additionalProperties": {
                "type": "object",
                "required": ["id_prefixes"],
                "additionalProperties": false,
                "properties": {
                    "id_prefixes": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    "attributes": {"type": ["array", "null"]},
                },
            }},
            "edges": {"type": "array", "items": {
                "type": "object",
                "required": ["subject", "predicate", "object"],
                "additionalProperties": false,
                "properties": {
                    "subject": category(), "predicate": predicate(), "object": category(),
                    "knowledge_types": {"type": ["array", "null"], "minItems": 1},
                    "attributes": {"type": ["array", "null"]},
                    "qualifiers": {"type": ["array", "null"]},
                    "association": category(),
                },
            }},
        },
    }))
    .unwrap()
}

fn category() -> Value {
    json!({"type": "string", "pattern": "^biolink:[A-Z][a-zA-Z]*$"})
}

fn predicate() -> Value {
    json!({"type": "string", "pattern": "^biolink:[a-z][a-z_]*$"})
}

fn attributes(null: bool) -> Value {
    let kinds = if null {
        json!(["array", "null"])
    } else {
        json!("array")
    };
    json!({"type": kinds, "items": {
        "type": "object",
        "required": ["attribute_type_id", "value"],
        "additionalProperties": false,
        "properties": {
            "attribute_type_id": {"type": "string"},
            "original_attribute_name": {"type": ["string", "null"]},
            "value": {},
            "value_type_id": {"type": ["string", "null"]},
            "attribute_source": {"type": ["string", "null"]},
            "value_url": {"type": ["string", "null"]},
            "attributes": {"type": ["array", "null"]},
        },
    }})
}

fn node() -> Value {
    json!({
        "type": "object",
        "required": ["categories", "attributes"],
        "additionalProperties": false,
        "properties": {
            "name": {"type": ["string", "null"]},
            "categories": {"type": "array", "minItems": 1, "items": category()},
            "attributes": attributes(false),
            "is_set": {"type": ["boolean", "null"]},
        },
    })
}

fn edge() -> Value {
    let roles = json!({"enum": [
        "primary_knowledge_source", "aggregator_knowledge_source", "supporting_data_source",
    ]});
    json!({
        "type": "object",
        "required": ["subject", "predicate", "object", "sources"],
        "additionalProperties": false,
        "properties": {
            "subject": {"type": "string"},
            "predicate": predicate(),
            "object": {"type": "string"},
            "attributes": attributes(true),
            "qualifiers": {"type": ["array", "null"], "items": {
                "type": "object",
                "required": ["qualifier_type_id", "qualifier_value"],
                "additionalProperties": false,
                "properties": {
                    "qualifier_type_id": predicate(),
                    "qualifier_value": {"type": "string"},
                },
            }},
            "sources": {"type": "array", "minItems": 1, "items": {
                "type": "object",
                "required": ["resource_id", "resource_role"],
                "properties": {
                    "resource_id": {"type": "string"},
                    "resource_role": roles,
                    "upstream_resource_ids": {"type": ["array", "null"], "items": {"type": "string"}},
                    "source_record_urls": {"type": ["array", "null"], "items": {"type": "string"}},
                },
            }},
        },
    })
}

fn result() -> Value {
    let bindings = json!({"type": "array", "items": {
        "type": "object",
        "required": ["id", "attributes"],
        "properties": {
            "id": {"type": "string"},
            "query_id": {"type": ["string", "null"]},
            "attributes": attributes(false),
        },
    }});
    json!({
        "type": "object",
        "required": ["node_bindings", "analyses"],
        "properties": {
            "node_bindings": {"type": "object", "additionalProperties": bindings},
            "analyses": {"type": "array", "items": {
                "type": "object",
                "required": ["resource_id", "edge_bindings"],
                "properties": {
                    "resource_id": {"type": "string"},
                    "score": {"type": ["number", "null"]},
                    "edge_bindings": {"type": "object", "additionalProperties": bindings},
                    "support_graphs": {"type": ["array", "null"]},
                    "scoring_method": {"type": ["string", "null"]},
                    "attributes": attributes(true),
                },
            }},
        },
    })
}
