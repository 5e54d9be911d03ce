//! The functions of `host.js`, and the errors of Node as those of the standard library.

use std::io;

use js_sys::Reflect;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/host.js")]
extern "C" {
    #[wasm_bindgen(catch)]
    pub fn open(path: &str, access: u32) -> Result<u32, JsValue>;
    #[wasm_bindgen(catch, js_name = openUnnamed)]
    pub fn open_unnamed() -> Result<u32, JsValue>;
    pub fn close(file: u32);
    #[wasm_bindgen(catch)]
    pub fn read(file: u32, bytes: &mut [u8], position: f64) -> Result<u32, JsValue>;
    #[wasm_bindgen(catch)]
    pub fn write(file: u32, bytes: &[u8], position: f64) -> Result<u32, JsValue>;
    #[wasm_bindgen(catch, js_name = setLength)]
    pub fn set_length(file: u32, length: f64) -> Result<(), JsValue>;
    #[wasm_bindgen(catch)]
    pub fn sync(file: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(catch)]
    pub fn metadata(path: &str) -> Result<Box<[f64]>, JsValue>;
    #[wasm_bindgen(catch, js_name = metadataOf)]
    pub fn metadata_of(file: u32) -> Result<Box<[f64]>, JsValue>;
    #[wasm_bindgen(catch)]
    pub fn names(folder: &str) -> Result<Vec<String>, JsValue>;
    #[wasm_bindgen(catch)]
    pub fn canonical(path: &str) -> Result<String, JsValue>;
    #[wasm_bindgen(catch)]
    pub fn rename(from: &str, to: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(catch)]
    pub fn remove(path: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(catch, js_name = createFolders)]
    pub fn create_folders(path: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(catch)]
    pub fn copy(from: &str, to: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(catch, js_name = freeBytes)]
    pub fn free_bytes(folder: &str) -> Result<f64, JsValue>;
    #[wasm_bindgen(js_name = temporaryFolder)]
    pub fn temporary_folder() -> String;
    #[wasm_bindgen(js_name = freeMemory)]
    pub fn free_memory() -> f64;
    #[wasm_bindgen(js_name = processId)]
    pub fn process_id() -> u32;
    pub fn processors() -> u32;
    pub fn now() -> f64;
}

/// Kinds and texts of the system's errors, by their names. The texts are those of Linux, as the
/// native command line prints them; Node has others.
const ERRORS: [(&str, io::ErrorKind, &str); 20] = [
    (
        "EACCES",
        io::ErrorKind::PermissionDenied,
        "Permission denied",
    ),
    (
        "EAGAIN",
        io::ErrorKind::WouldBlock,
        "Resource temporarily unavailable",
    ),
    (
        "EBUSY",
        io::ErrorKind::ResourceBusy,
        "Device or resource busy",
    ),
    (
        "EDQUOT",
        io::ErrorKind::QuotaExceeded,
        "Disk quota exceeded",
    ),
    ("EEXIST", io::ErrorKind::AlreadyExists, "File exists"),
    ("EFBIG", io::ErrorKind::FileTooLarge, "File too large"),
    ("EINVAL", io::ErrorKind::InvalidInput, "Invalid argument"),
    ("EIO", io::ErrorKind::Other, "Input/output error"),
    ("EISDIR", io::ErrorKind::IsADirectory, "Is a directory"),
    (
        "ELOOP",
        io::ErrorKind::Other,
        "Too many levels of symbolic links",
    ),
    ("EMFILE", io::ErrorKind::Other, "Too many open files"),
    (
        "ENAMETOOLONG",
        io::ErrorKind::InvalidFilename,
        "File name too long",
    ),
    ("ENODEV", io::ErrorKind::Other, "No such device"),
    (
        "ENOENT",
        io::ErrorKind::NotFound,
        "No such file or directory",
    ),
    (
        "ENOSPC",
        io::ErrorKind::StorageFull,
        "No space left on device",
    ),
    ("ENOTDIR", io::ErrorKind::NotADirectory, "Not a directory"),
    ("ENXIO", io::ErrorKind::Other, "No such device or address"),
    (
        "EPERM",
        io::ErrorKind::PermissionDenied,
        "Operation not permitted",
    ),
    ("EPIPE", io::ErrorKind::BrokenPipe, "Broken pipe"),
    (
        "EROFS",
        io::ErrorKind::ReadOnlyFilesystem,
        "Read-only file system",
    ),
];

/// An error of Node as one of the standard library.
pub fn error(cause: JsValue) -> io::Error {
    let text = |key: &str| Reflect::get(&cause, &key.into()).ok()?.as_string();
    let code = text("code").unwrap_or_default();
    match ERRORS.iter().find(|(name, ..)| *name == code) {
        Some(&(_, kind, message)) => io::Error::new(kind, message),
        None => io::Error::other(text("message").unwrap_or(code)),
    }
}
