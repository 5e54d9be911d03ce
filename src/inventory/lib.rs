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
const KEPT: &str = "tract_linalg";

/// A type that has a registry, implemented by [`collect!`].
pub trait Collect: Any + Sync {
    /// True if the registry is filled.
    const KEPT: bool;
    /// The registry of this type.
    fn list() -> &'static List;
}

/// Last entry of a registry; each entry links to the previous one.
#[derive(Default)]
pub struct List(Mutex<Option<&'static Entry>>);

impl List {
    /// An empty registry.
    pub const fn new() -> List {
        List(Mutex::new(None))
    }
}

/// An entry of a registry.
pub struct Entry {
    /// The registered value.
    pub value: &'static dyn Listed,
    /// The previous entry, set on registration.
    pub before: OnceLock<Option<&'static Entry>>,
}

impl Entry {
    /// Registers the entry. Program start may call this repeatedly (in wasm, once per thread); only
    /// the first call counts.
    pub fn enter(&'static self) {
        let mut last = self
            .value
            .list_of()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.before.set(*last).is_ok() {
            *last = Some(self);
        }
    }
}

/// A value of any type that has a registry.
pub trait Listed: Any + Sync {
    /// The registry of the value's type.
    fn list_of(&self) -> &'static List;
}

impl<T: Collect> Listed for T {
    fn list_of(&self) -> &'static List {
        T::list()
    }
}

/// Returns true if the registry of this value is filled.
pub const fn is_kept<T: Collect>(_: &T) -> bool {
    T::KEPT
}

/// Returns true if registries of this module are filled.
pub const fn is_of_kept(module: &str) -> bool {
    matches!(module.as_bytes().split_at_checked(KEPT.len()), Some((name, _)) if same(name, KEPT.as_bytes()))
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
    of: std::marker::PhantomData<fn() -> T>,
}

fn all<T: Collect>() -> Iter<T> {
    Iter {
        next: *T::list().0.lock().unwrap_or_else(PoisonError::into_inner),
        of: std::marker::PhantomData,
    }
}

impl<T: Collect> Iterator for Iter<T> {
    type Item = &'static T;

    fn next(&mut self) -> Option<&'static T> {
        let entry = self.next?;
        self.next = entry.before.get().copied().flatten();
        let value: &'static dyn Any = entry.value;
        value.downcast_ref()
    }
}

/// Defines the registry of a type.
#[macro_export]
macro_rules! collect {
    ($of:ty) => {
        impl $crate::Collect for $of {
            const KEPT: bool = $crate::is_of_kept(module_path!());

            fn list() -> &'static $crate::List {
                static LIST: $crate::List = $crate::List::new();
                &LIST
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
                before: ::std::sync::OnceLock::new(),
            };

            extern "C" fn enter() {
                ENTRY.enter();
            }

            extern "C" fn pass() {}

            // The linker removes statics without references.
            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func,mod_init_funcs"))]
            #[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
            #[cfg_attr(not(any(target_vendor = "apple", windows)), unsafe(link_section = ".init_array"))]
            static AT_THE_START: extern "C" fn() = if $crate::is_kept(&{ $($value)* }) { enter } else { pass };
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kernel(u32);

    impl Collect for Kernel {
        const KEPT: bool = is_of_kept("tract_linalg::routines");

        fn list() -> &'static List {
            static LIST: List = List::new();
            &LIST
        }
    }

    struct Transform(#[expect(dead_code)] u32);

    collect!(Transform);

    submit! { Kernel(1) }
    submit! { Kernel(2) }
    submit! { Transform(3) }

    #[test]
    fn kernels_are_listed_before_the_program_begins_and_nothing_else_is() {
        let mut found: Vec<u32> = iter::<Kernel>().map(|kernel| kernel.0).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 2]);
        assert_eq!(iter::<Kernel>.into_iter().count(), 2);
        assert_eq!(iter::<Transform>().count(), 0);
    }

    #[test]
    fn what_is_entered_twice_is_listed_once() {
        struct Once(u32);

        impl Collect for Once {
            const KEPT: bool = true;

            fn list() -> &'static List {
                static LIST: List = List::new();
                &LIST
            }
        }

        static ENTRY: Entry = Entry {
            value: &Once(7),
            before: OnceLock::new(),
        };
        ENTRY.enter();
        ENTRY.enter();
        let found: Vec<u32> = iter::<Once>().map(|once| once.0).collect();
        assert_eq!(found, [7]);
    }

    #[test]
    fn a_crate_is_known_by_its_modules() {
        assert!(is_of_kept("tract_linalg") && is_of_kept("tract_linalg::routines"));
        assert!(!is_of_kept("tract_nnef::transform") && !is_of_kept("tract") && !is_of_kept(""));
    }
}
