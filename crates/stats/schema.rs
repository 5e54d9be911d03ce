//! JSON schemas of the types that occur in the settings document.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{Method, PowerOfTwo, Range};

impl JsonSchema for Method {
    fn schema_name() -> Cow<'static, str> {
        "Method".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A calibration method. `ort-entropy` needs at least as many bins as levels, \
                            which the pattern does not check.",
            "type": "string",
            "pattern": Method::pattern(),
        })
    }
}

impl JsonSchema for PowerOfTwo {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PowerOfTwo".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [true, false, "nearest"] })
    }
}

impl JsonSchema for Range {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Range".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <[f32; 2]>::json_schema(generator)
    }
}
