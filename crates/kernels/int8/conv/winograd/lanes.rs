//! Vectors of eight i16 or four i32 that wrap: machine vectors in wasm, arrays elsewhere. Array
//! loops avoid closures, which would not be compiled for a processor detected at run time.

#[cfg(target_arch = "wasm32")]
mod imp {
    use core::arch::wasm32::*;

    /// Eight i16.
    #[derive(Clone, Copy)]
    pub(in super::super) struct I16x8(v128);

    impl I16x8 {
        /// # Safety
        ///
        /// Eight bytes can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn load_u8(from: *const u8) -> I16x8 {
            // SAFETY: the caller's promise.
            I16x8(unsafe { u16x8_load_extend_u8x8(from) })
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
        pub(in super::super) fn add(self, other: I16x8) -> I16x8 {
            I16x8(i16x8_add(self.0, other.0))
        }

        #[inline(always)]
        pub(in super::super) fn sub(self, other: I16x8) -> I16x8 {
            I16x8(i16x8_sub(self.0, other.0))
        }

        /// Shifts left: times `2^by`.
        #[inline(always)]
        pub(in super::super) fn shl(self, by: u32) -> I16x8 {
            I16x8(i16x8_shl(self.0, by))
        }
    }

    /// Four i32.
    #[derive(Clone, Copy)]
    pub(in super::super) struct I32x4(v128);

    impl I32x4 {
        /// # Safety
        ///
        /// Four i32 can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn load(from: *const i32) -> I32x4 {
            // SAFETY: the caller's promise; wasm loads need no alignment.
            I32x4(unsafe { v128_load(from.cast()) })
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
        pub(in super::super) fn add(self, other: I32x4) -> I32x4 {
            I32x4(i32x4_add(self.0, other.0))
        }

        #[inline(always)]
        pub(in super::super) fn sub(self, other: I32x4) -> I32x4 {
            I32x4(i32x4_sub(self.0, other.0))
        }

        /// Shifts left: times `2^by`.
        #[inline(always)]
        pub(in super::super) fn shl(self, by: u32) -> I32x4 {
            I32x4(i32x4_shl(self.0, by))
        }

        /// Multiplies by a number, then shifts right arithmetically.
        #[inline(always)]
        pub(in super::super) fn mul_shr(self, by: i32, right: u32) -> I32x4 {
            I32x4(i32x4_shr(i32x4_mul(self.0, i32x4_splat(by)), right))
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use core::num::Wrapping;
    use core::ops::{Add, Shl, Sub};

    /// Wrapping lanes.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Lanes<T, const N: usize>([Wrapping<T>; N]);

    /// Eight i16.
    pub(in super::super) type I16x8 = Lanes<i16, 8>;

    /// Four i32.
    pub(in super::super) type I32x4 = Lanes<i32, 4>;

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

        /// Shifts left: times `2^by`.
        #[inline(always)]
        pub(in super::super) fn shl(mut self, by: u32) -> Self {
            for value in &mut self.0 {
                *value = *value << by as usize;
            }
            self
        }
    }

    impl I16x8 {
        /// # Safety
        ///
        /// Eight bytes can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn load_u8(from: *const u8) -> I16x8 {
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

    impl I32x4 {
        /// # Safety
        ///
        /// Four i32 can be read at `from`.
        #[inline(always)]
        pub(in super::super) unsafe fn load(from: *const i32) -> I32x4 {
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

        /// Multiplies by a number, then shifts right arithmetically.
        #[inline(always)]
        pub(in super::super) fn mul_shr(mut self, by: i32, right: u32) -> I32x4 {
            for value in &mut self.0 {
                *value = (*value * Wrapping(by)) >> right as usize;
            }
            self
        }
    }
}

pub(super) use imp::{I16x8, I32x4};
