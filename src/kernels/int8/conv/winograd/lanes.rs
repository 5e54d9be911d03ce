//! Eight i16 or four i32 side by side, which wrap: the machine's own where it has them, an array elsewhere (in loops
//! without a function, which would not be compiled for a processor that is only known when it runs).

#[cfg(target_arch = "wasm32")]
mod machine {
    use core::arch::wasm32::*;

    /// Eight i16.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Words(v128);

    impl Words {
        /// # Safety
        ///
        /// Eight bytes can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn of_bytes(from: *const u8) -> Words {
            // SAFETY: the caller's promise.
            Words(unsafe { u16x8_load_extend_u8x8(from) })
        }

        /// # Safety
        ///
        /// Sixteen bytes can be written at `to`.
        #[inline(always)]
        pub(in super::super) unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller's promise; wasm stores need no alignment.
            unsafe { v128_store(to.cast(), self.0) }
        }

        #[inline(always)]
        pub(in super::super) fn add(self, other: Words) -> Words {
            Words(i16x8_add(self.0, other.0))
        }

        #[inline(always)]
        pub(in super::super) fn sub(self, other: Words) -> Words {
            Words(i16x8_sub(self.0, other.0))
        }

        /// Times two to the power of `by`.
        #[inline(always)]
        pub(in super::super) fn left(self, by: u32) -> Words {
            Words(i16x8_shl(self.0, by))
        }
    }

    /// Four i32.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Sums(v128);

    impl Sums {
        /// # Safety
        ///
        /// Four i32 can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn load(from: *const i32) -> Sums {
            // SAFETY: the caller's promise; wasm loads need no alignment.
            Sums(unsafe { v128_load(from.cast()) })
        }

        /// # Safety
        ///
        /// Four i32 can be written at `to`.
        #[inline(always)]
        pub(in super::super) unsafe fn store(self, to: *mut i32) {
            // SAFETY: the caller's promise; wasm stores need no alignment.
            unsafe { v128_store(to.cast(), self.0) }
        }

        #[inline(always)]
        pub(in super::super) fn add(self, other: Sums) -> Sums {
            Sums(i32x4_add(self.0, other.0))
        }

        #[inline(always)]
        pub(in super::super) fn sub(self, other: Sums) -> Sums {
            Sums(i32x4_sub(self.0, other.0))
        }

        /// Times two to the power of `by`.
        #[inline(always)]
        pub(in super::super) fn left(self, by: u32) -> Sums {
            Sums(i32x4_shl(self.0, by))
        }

        /// Times a number, over two to the power of `right`.
        #[inline(always)]
        pub(in super::super) fn scaled(self, by: i32, right: u32) -> Sums {
            Sums(i32x4_shr(i32x4_mul(self.0, i32x4_splat(by)), right))
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod machine {
    use core::num::Wrapping;
    use core::ops::{Add, Shl, Sub};

    /// Numbers that wrap.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Lanes<T, const N: usize>([Wrapping<T>; N]);

    /// Eight i16.
    pub(in super::super) type Words = Lanes<i16, 8>;

    /// Four i32.
    pub(in super::super) type Sums = Lanes<i32, 4>;

    impl<T: Copy, const N: usize> Lanes<T, N>
    where
        Wrapping<T>: Add<Output = Wrapping<T>>
            + Sub<Output = Wrapping<T>>
            + Shl<usize, Output = Wrapping<T>>,
    {
        #[inline(always)]
        pub(in super::super) fn add(mut self, other: Self) -> Self {
            for (a, b) in self.0.iter_mut().zip(other.0) {
                *a = *a + b;
            }
            self
        }

        #[inline(always)]
        pub(in super::super) fn sub(mut self, other: Self) -> Self {
            for (a, b) in self.0.iter_mut().zip(other.0) {
                *a = *a - b;
            }
            self
        }

        /// Times two to the power of `by`.
        #[inline(always)]
        pub(in super::super) fn left(mut self, by: u32) -> Self {
            for value in &mut self.0 {
                *value = *value << by as usize;
            }
            self
        }
    }

    impl Words {
        /// # Safety
        ///
        /// Eight bytes can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn of_bytes(from: *const u8) -> Words {
            // SAFETY: the caller's promise.
            let bytes = unsafe { from.cast::<[u8; 8]>().read() };
            let mut words = [Wrapping(0); 8];
            for (word, byte) in words.iter_mut().zip(bytes) {
                *word = Wrapping(i16::from(byte));
            }
            Lanes(words)
        }

        /// # Safety
        ///
        /// Sixteen bytes can be written at `to`.
        #[inline(always)]
        pub(in super::super) unsafe fn store(mut self, to: *mut u8) {
            for word in &mut self.0 {
                *word = Wrapping(word.0.to_le());
            }
            // SAFETY: the caller's promise; the write asks for no alignment.
            unsafe { to.cast::<[Wrapping<i16>; 8]>().write_unaligned(self.0) }
        }
    }

    impl Sums {
        /// # Safety
        ///
        /// Four i32 can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn load(from: *const i32) -> Sums {
            // SAFETY: the caller's promise; the read asks for no alignment.
            Lanes(unsafe { from.cast::<[Wrapping<i32>; 4]>().read_unaligned() })
        }

        /// # Safety
        ///
        /// Four i32 can be written at `to`.
        #[inline(always)]
        pub(in super::super) unsafe fn store(self, to: *mut i32) {
            // SAFETY: the caller's promise; the write asks for no alignment.
            unsafe { to.cast::<[Wrapping<i32>; 4]>().write_unaligned(self.0) }
        }

        /// Times a number, over two to the power of `right`.
        #[inline(always)]
        pub(in super::super) fn scaled(mut self, by: i32, right: u32) -> Sums {
            for value in &mut self.0 {
                *value = (*value * Wrapping(by)) >> right as usize;
            }
            self
        }
    }
}

pub(super) use machine::{Sums, Words};
