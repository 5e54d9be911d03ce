//! Registries that are filled at program start from all over a program, as in `inventory`, but not
//! all of them.
//!
//! The linker cannot remove registered values, nor the code they call. tract registers its kernels,
//! which it searches for each operator. It also registers transforms, runtimes and options for
//! lookup by name. Octet never looks these up, yet a single transform links a whole second file
//! format. So only the registries of kernels are filled, and the others stay empty.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The crate whose registries are filled.
const ACTIVE: &str = "tract_linalg";

/// A type that has a registry, implemented by [`collect!`].
pub trait Collect: Any + Sync {
    /// True if the registry is filled.
    const ACTIVE: bool;
    /// The registry of this type.
    fn registry() -> &'static Registry;
}

/// Last entry of a registry; each entry links to the previous one.
#[derive(Default)]
pub struct Registry(Mutex<Option<&'static Entry>>);

impl Registry {
    /// An empty registry.
    pub const fn new() -> Registry {
        Registry(Mutex::new(None))
    }
}

/// An entry of a registry.
pub struct Entry {
    /// The registered value.
    pub value: &'static dyn Registered,
    /// The previous entry, set on registration.
    pub previous: OnceLock<Option<&'static Entry>>,
}

impl Entry {
    /// Registers the entry. Program start may call this repeatedly (in wasm, once per thread); only
    /// the first call counts.
    pub fn register(&'static self) {
        let mut last = self
            .value
            .registry_of()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.previous.set(*last).is_ok() {
            *last = Some(self);
        }
    }
}

/// A value of any type that has a registry.
pub trait Registered: Any + Sync {
    /// The registry of the value's type.
    fn registry_of(&self) -> &'static Registry;
}

impl<T: Collect> Registered for T {
    fn registry_of(&self) -> &'static Registry {
        T::registry()
    }
}

/// Returns true if the registry of this value is filled.
pub const fn is_active<T: Collect>(_: &T) -> bool {
    T::ACTIVE
}

/// Returns true if registries of this module are filled.
pub const fn is_active_module(module: &str) -> bool {
    matches!(module.as_bytes().split_at_checked(ACTIVE.len()), Some((name, _)) if same(name, ACTIVE.as_bytes()))
}

/// Returns true if two strings of equal length are equal.
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The values in a registry: `iter::<T>()`, or `iter::<T>` as an `IntoIterator`.
#[allow(non_camel_case_types)]
pub enum iter<T> {
    /// The values.
    iter,
    /// Never constructed; it holds the type parameter.
    #[doc(hidden)]
    Never(std::convert::Infallible, std::marker::PhantomData<T>),
}

pub use iter::*;

impl<T: Collect> IntoIterator for iter<T> {
    type Item = &'static T;
    type IntoIter = Iter<T>;

    fn into_iter(self) -> Iter<T> {
        all()
    }
}

impl<T: Collect> Deref for iter<T> {
    type Target = fn() -> Iter<T>;

    fn deref(&self) -> &fn() -> Iter<T> {
        &(all as fn() -> Iter<T>)
    }
}

/// Iterates from the last entry to the first.
pub struct Iter<T> {
    next: Option<&'static Entry>,
    marker: std::marker::PhantomData<fn() -> T>,
}

fn all<T: Collect>() -> Iter<T> {
    Iter {
        next: *T::registry()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
        marker: std::marker::PhantomData,
    }
}

impl<T: Collect> Iterator for Iter<T> {
    type Item = &'static T;

    fn next(&mut self) -> Option<&'static T> {
        let entry = self.next?;
        self.next = entry.previous.get().copied().flatten();
        let value: &'static dyn Any = entry.value;
        value.downcast_ref()
    }
}

/// Defines the registry of a type.
#[macro_export]
macro_rules! collect {
    ($of:ty) => {
        impl $crate::Collect for $of {
            const ACTIVE: bool = $crate::is_active_module(module_path!());

            fn registry() -> &'static $crate::Registry {
                static REGISTRY: $crate::Registry = $crate::Registry::new();
                &REGISTRY
            }
        }
    };
}

/// Registers a value at program start, if its type's registry is filled.
#[macro_export]
macro_rules! submit {
    ($($value:tt)*) => {
        const _: () = {
            static ENTRY: $crate::Entry = $crate::Entry {
                value: &{ $($value)* },
                previous: ::std::sync::OnceLock::new(),
            };

            extern "C" fn register() {
                ENTRY.register();
            }

            extern "C" fn skip() {}

            // The linker removes statics without references.
            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func,mod_init_funcs"))]
            #[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
            #[cfg_attr(not(any(target_vendor = "apple", windows)), unsafe(link_section = ".init_array"))]
            static AT_THE_START: extern "C" fn() = if $crate::is_active(&{ $($value)* }) { register } else { skip };
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestKernel(u32);

    impl Collect for TestKernel {
        const ACTIVE: bool = is_active_module("tract_linalg::routines");

        fn registry() -> &'static Registry {
            static REGISTRY: Registry = Registry::new();
            &REGISTRY
        }
    }

    struct TestTransform(#[expect(dead_code)] u32);

    collect!(TestTransform);

    submit! { TestKernel(1) }
    submit! { TestKernel(2) }
    submit! { TestTransform(3) }

    #[test]
    fn kernels_are_registered_at_program_start_and_nothing_else_is() {
        let mut values: Vec<u32> = iter::<TestKernel>().map(|kernel| kernel.0).collect();
        values.sort_unstable();
        assert_eq!(values, [1, 2]);
        assert_eq!(iter::<TestKernel>.into_iter().count(), 2);
        assert_eq!(iter::<TestTransform>().count(), 0);
    }

    #[test]
    fn repeated_registration_counts_once() {
        struct Once(u32);

        impl Collect for Once {
            const ACTIVE: bool = true;

            fn registry() -> &'static Registry {
                static REGISTRY: Registry = Registry::new();
                &REGISTRY
            }
        }

        static ENTRY: Entry = Entry {
            value: &Once(7),
            previous: OnceLock::new(),
        };
        ENTRY.register();
        ENTRY.register();
        let values: Vec<u32> = iter::<Once>().map(|once| once.0).collect();
        assert_eq!(values, [7]);
    }

    #[test]
    fn modules_of_the_active_crate_are_active() {
        assert!(is_active_module("tract_linalg") && is_active_module("tract_linalg::routines"));
        assert!(
            !is_active_module("tract_nnef::transform")
                && !is_active_module("tract")
                && !is_active_module("")
        );
    }
}
