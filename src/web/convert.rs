//! Conversion of values and errors between Rust and JavaScript.

use js_sys::Reflect;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

use crate::quantize;
use crate::session::{Error, ErrorKind};

pub(super) fn to_js<T: Serialize>(value: &T) -> Result<JsValue, JsValue> {
    let plain = serde_wasm_bindgen::Serializer::json_compatible();
    value
        .serialize(&plain)
        .map_err(|cause| failure(ErrorKind::Internal, &cause.to_string()))
}

pub(super) fn from_js<T: DeserializeOwned>(value: JsValue, what: &str) -> Result<T, JsValue> {
    serde_wasm_bindgen::from_value(value).map_err(|cause| {
        failure(
            ErrorKind::Settings,
            &format!("the {what} can't be used: {cause}"),
        )
    })
}

pub(super) fn settings_from_js(settings: JsValue) -> Result<quantize::Settings, JsValue> {
    // Conversion through a plain value: read directly into the document, unknown keys would be
    // ignored.
    quantize::Settings::from_value(from_js(settings, "settings")?)
        .map_err(|cause| failure(ErrorKind::Settings, &cause.to_string()))
}

pub(super) fn error(error: Error) -> JsValue {
    failure(error.kind(), &error.to_string())
}

/// A JS `Error` with a `kind`.
pub(super) fn failure(kind: ErrorKind, message: &str) -> JsValue {
    let error = js_sys::Error::new(message);
    // Setting a property of an object made just above can't fail.
    let _ = Reflect::set(&error, &"kind".into(), &kind.name().into());
    error.into()
}

/// The message of an `Error`, or what else was thrown as text.
pub(super) fn text_of(thrown: &JsValue) -> String {
    let message = Reflect::get(thrown, &"message".into()).ok();
    let message = message.and_then(|message| message.as_string());
    message.unwrap_or_else(|| format!("{thrown:?}"))
}
