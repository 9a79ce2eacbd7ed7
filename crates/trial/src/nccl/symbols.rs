//! Tables of foreign functions: one line a function, loaded by name.

/// Makes a struct of function pointers that are looked up by name in a library.
///
/// Required ones are plain pointers, optional ones `Option`. `SIGNATURES` lists every function with
/// its argument types as written, so that a test can hold them against the written facts.
macro_rules! functions {
    (
        $(#[$meta:meta])* $table:ident;
        required { $( $req:ident = $req_symbol:literal ( $($ra:ty),* ) -> $rr:ty; )* }
        optional { $( $opt:ident = $opt_symbol:literal ( $($oa:ty),* ) -> $or:ty; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(super) struct $table {
            $( pub(super) $req: unsafe extern "C" fn($($ra),*) -> $rr, )*
            $( pub(super) $opt: Option<unsafe extern "C" fn($($oa),*) -> $or>, )*
        }

        impl $table {
            /// Looks every function up; the error names the first required one that is missing.
            ///
            /// # Safety
            /// `library` must be the library that this table describes, so that the names have
            /// these signatures, and must never be closed while the table is in use.
            pub(super) unsafe fn load(
                library: &libloading::os::unix::Library,
            ) -> Result<Self, &'static str> {
                // SAFETY: the caller vouches for the signatures; the pointers are copied out of
                // symbols of a library that is never closed
                unsafe {
                    Ok(Self {
                        $( $req: *library
                            .get::<unsafe extern "C" fn($($ra),*) -> $rr>(
                                concat!($req_symbol, "\0").as_bytes())
                            .map_err(|_| $req_symbol)?, )*
                        $( $opt: library
                            .get::<unsafe extern "C" fn($($oa),*) -> $or>(
                                concat!($opt_symbol, "\0").as_bytes())
                            .ok()
                            .map(|symbol| *symbol), )*
                    })
                }
            }

            /// Every function with its argument and result types, as written here.
            #[cfg(test)]
            pub(super) const SIGNATURES: &'static [crate::nccl::symbols::Signature] = &[
                $( ($req_symbol, &[$(stringify!($ra)),*], stringify!($rr)), )*
                $( ($opt_symbol, &[$(stringify!($oa)),*], stringify!($or)), )*
            ];
        }
    };
}

pub(super) use functions;

/// Name, argument types and result type of a function.
#[cfg(test)]
pub(super) type Signature = (&'static str, &'static [&'static str], &'static str);
