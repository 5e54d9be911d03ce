//! Lists that are put together from all over a program before it begins, as `inventory` makes them; but not all of them.
//!
//! What is entered in a list can't be left out by the linker, nor what that calls. tract lists its kernels, which it looks through
//! for each operator, and also transforms, runtimes and knobs, for people who ask for one by its name. Octet never does; yet one
//! transform alone brings a whole second file format along. So lists of kernels are kept, and others stay empty.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The crate whose lists are kept.
const KEPT: &str = "tract_linalg";

/// Something there is a list of: [`collect!`] makes it.
pub trait Collect: Any + Sync {
    /// Whether the list is kept.
    const KEPT: bool;
    /// The list.
    fn list() -> &'static List;
}

/// The last entry of a list; each knows the one before it.
#[derive(Default)]
pub struct List(Mutex<Option<&'static Entry>>);

impl List {
    /// An empty one.
    pub const fn new() -> List {
        List(Mutex::new(None))
    }
}

/// A place in a list.
pub struct Entry {
    /// What is listed.
    pub value: &'static dyn Listed,
    /// The entry before this one, once this one is in.
    pub before: OnceLock<Option<&'static Entry>>,
}

impl Entry {
    /// Enters it. The start of a program may come by more than once (in wasm, for each thread): only the first time counts.
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

/// A value of any type there is a list of.
pub trait Listed: Any + Sync {
    /// That list.
    fn list_of(&self) -> &'static List;
}

impl<T: Collect> Listed for T {
    fn list_of(&self) -> &'static List {
        T::list()
    }
}

/// Whether the list of this value is kept.
pub const fn is_kept<T: Collect>(_: &T) -> bool {
    T::KEPT
}

/// Whether lists of this module are.
pub const fn is_of_kept(module: &str) -> bool {
    matches!(module.as_bytes().split_at_checked(KEPT.len()), Some((name, _)) if same(name, KEPT.as_bytes()))
}

/// Whether two strings of one length are the same.
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

/// The list of a type: `iter::<T>()`, or `iter::<T>` wherever something to iterate over is wanted.
#[allow(non_camel_case_types)]
pub enum iter<T> {
    /// The list.
    iter,
    /// Nothing: it holds the type.
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

/// From the last entry to the first.
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

/// Makes a list of values of this type.
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

/// Enters a value in the list of its type before the program begins; where that list is kept.
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

            // What is not named here is not in the program.
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
