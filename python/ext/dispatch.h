/* dispatch.h - a kernel, its compiled variants and one launch, shared by the files of the dispatcher
 *
 *   dispatch.c    the Python type, launch()
 *   arguments.c   Python arguments -> key words and parameter words
 *   structure.c   arguments that hold others
 *   table.c       key words -> compiled variant
 *   tuned.c       key words -> what tune.launch found
 *   variant.c     CpuKernel and CudaKernel
 *   call_plan.c   launches of a call that is like an earlier one */
#ifndef TILEWRIGHT_PYTHON_DISPATCH_H
#define TILEWRIGHT_PYTHON_DISPATCH_H

#include "launch.h"
#include "lock.h"

/* CpuKernel and CudaKernel: one compiled variant. Exactly one of cpu.entry and cuda is set. */
typedef struct tw_variant {
  PyObject ob_base;
  PyObject *owner; /* owned or NULL: keeps the code of a CPU kernel alive */
  PyObject *name;  /* owned str */
  tw_cpu_kernel_t cpu;
  tw_no_alias_t *apart; /* owned; of a CPU kernel: arrays that it takes for separate */
  uint32_t num_apart;
  tw_cuda_kernel_t *cuda; /* owned */
  uint64_t written;       /* bit i: the kernel writes to leaf i of the arguments */
  /* What makes variants for launches that this one is not for, from a kind (tw_alternative_kind_t) and a number, and
   * those: by kind, and by the logarithm of the number of slices or blocks, or by the axis; and one for arrays that
   * overlap.
   */
  PyObject *better, *made[TW_ALTERNATIVE_SPLIT_K][TW_PLANS], *overlapping, *overlapped; /* owned, or NULL */
  /* What makes a variant by another plan where the driver does not take this one's code, or this one needs much local
   * memory; and the variant, which is launched in the place of this one. */
  PyObject *or_else, *instead; /* owned, or NULL */
  int much_local;              /* bytes of local memory of a thread, from which on `or_else` is asked */
  TW_MUTEX                     /* of what or_else() is told; what is made is published, and stays */
} tw_variant_t;

/* "sm_90a" of a compute capability: from 9.0 on there are features that only the exact chip has. */
PyObject *tw_ext_target_name(int major, int minor);

/* The target, two words for a leaf, one for a structure, and the extents and strides that are constants. */
enum { MOST_STRUCTURES = TW_MAX_ARGS, MOST_STATIC = 256 };
enum { KEY_WORDS = 1 + 2 * TW_MAX_ARGS + MOST_STRUCTURES + MOST_STATIC };

/* Key word of a scalar: this bit, its dtype, and whether an integer is divisible by 16. */
#define SCALAR_WORD (1ull << 60)
#define SCALAR_DIV (1ull << 8)
#define SCALAR_LOOSE (1ull << 9) /* a number of Python for a kernel of threads: it takes the dtype of what it meets */
/* Of an array with extents or strides that are constants: a word says which (bit d: extent d, bit 8 + d: stride d), and
 * these follow. */
#define STATIC_WORD (1ull << 59)
/* Key word of a dtype that is passed as an argument: a constant without a second word. */
#define DTYPE_WORD (1ull << 61)

/* Key word of a structure: this bit, its kind, how many parts it has, and a number for what it is like. */
#define STRUCTURE_WORD (1ull << 62)
/* First key word of a constant: this bit, and what the second one is. */
#define CONSTANT_WORD (1ull << 63)
enum { CONST_INT = 1, CONST_BOOL, CONST_FLOAT, CONST_NONE, CONST_OBJECT };

typedef struct watched_entry {
  uint64_t hash, used;    /* used: the dispatcher's clock when a launch of another variant last came to this one */
  tw_variant_t *variant;  /* owned */
  PyObject *target, *key; /* owned: what on_miss was asked for */
  size_t count;
  uint64_t words[];
} entry_t;

/* Kernels of threads; with TW_WIDE_THREADS numbers of Python are int64 and float64, as Numba has them. */
enum { TW_THREADS = 1, TW_WIDE_THREADS = 2 };

struct tw_tuned; /* tuned.c */

typedef struct dispatcher {
  PyObject ob_base;
  PyObject *name;                /* owned str */
  PyObject *parameters;          /* owned tuple of str */
  PyObject *on_miss;             /* owned callable */
  PyObject *defaults;            /* owned tuple or NULL: of the last parameters */
  PyObject *watched;             /* owned tuple or NULL: what the variants read outside of the kernel */
  PyObject *forms;               /* owned tuple or NULL: which parts of each parameter are constants */
  PyObject *objects;             /* owned dict: constants that are no numbers -> small integers; nothing leaves it */
  PyObject *records;             /* the same: type -> (names of fields, their forms), or None: no dataclass */
  PyObject *seen[TW_MAX_ARGS];   /* owned: last object at a constant position … */
  uint64_t seen_id[TW_MAX_ARGS]; /* … and its integer */
  uint64_t numbers;              /* the last of those integers */
  uint64_t marked;               /* bit i: argument i is a constant, or an array with extents or strides that are */
  tw_known_array_t *known;       /* owned, `leaves` of them: the arrays of the last launch; not used without a GIL */
  Py_ssize_t leaves;             /* as many as there are parameters, until there is a structure */
  Py_ssize_t count;              /* of parameters */
  bool takes_long;               /* arrays with extents beyond 31 bits, for which its kernel never asks */
  int threads;                   /* one program a thread (TW_THREADS …): launched with threads per block */
  entry_t **table;               /* owned, open addressing, `slots` is a power of two */
  size_t slots, used;
  uint64_t clock;         /* counts launches that change from one variant to another */
  int most_variants;      /* 0: no bound */
  entry_t *last;          /* found by the last launch; in the table */
  struct tw_tuned *tuned; /* owned, or NULL: tune.launch has not been asked */
  bool is_begun;          /* by the one thread that initializes it */
  TW_MUTEX                /* of `watched`, `seen`, the table and `tuned`; all else stays from the first launch on */
} dispatcher_t;

/* One launch in the making; not cleared as a whole, it is large. */
typedef struct call {
  dispatcher_t *self;
  tw_reader_t reader;
  uint32_t grid[3], block[4]; /* of a block its threads, and the bytes of shared memory that the launch adds */
  bool has_block;
  int kind, device_id;             /* of the arrays; TW_DEVICE_NONE: there are none */
  bool mixed;                      /* arrays in different places */
  uint64_t read_only, overlapping; /* bit i: leaf i; without structures the leaves are the arguments */
  PyObject *arguments;             /* borrowed */
  Py_ssize_t shift;                /* leaves of the arguments so far, less these */
  int structures;                  /* how many so far */
  PyObject *path;                  /* owned or NULL: from an argument to the part of it that cannot be read */
  size_t key_count, word_count;
  uint16_t place[TW_MAX_ARGS]; /* 0: no array; else kind << 8 | device + 1 */
  uint64_t key[KEY_WORDS];
  uint64_t words[TW_MAX_WORDS + TW_MORE_WORDS] __attribute__((aligned(64)));
} call_t;

/* --- arguments.c ------------------------------------------------------------------------------- */

/* Reads every argument of the tuple, which has as many as the kernel, into key words and parameter words, and finds
 * where the arrays are. 0, or -1 with an exception that names kernel and argument. */
int tw_call_read_arguments(call_t *call, PyObject *arguments);
/* Reads a grid or block: an int, or a tuple of one to three. */
int tw_call_read_extents(const dispatcher_t *self, PyObject *object, const char *what,
                         tw_status_t (*check)(const int64_t *), uint32_t out[3]);
/* Raises that there are too few or too many arguments. Returns -1. */
int tw_call_count_error(const dispatcher_t *self, Py_ssize_t found);
/* Raises that the kernel would write to the arguments of a mask. Returns -1. */
int tw_call_mask_error(const call_t *call, uint64_t mask, const char *what);
/* Raises the status (taken) with the kernel's name in front. Returns -1. */
int tw_call_error(const dispatcher_t *self, tw_status_t status);
/* The value of a constant as Python knows it: NumPy scalars become Python's; new reference. */
PyObject *tw_ext_constant_value(tw_state_t *state, PyObject *object);
/* A number, not 0, for a key; the same for equal ones. 0, or -1 with an exception. */
int tw_dispatcher_number(dispatcher_t *self, PyObject *key, uint64_t *out);

/* --- dispatch.c -------------------------------------------------------------------------------- */

/* Starts a variant, which the caller holds, with the words, the grid and the stream of the call. 0, or -1 with an
 * exception. */
int tw_call_run(call_t *call, tw_variant_t *variant);

/* --- structure.c ------------------------------------------------------------------------------- */

typedef enum { TW_LEAF, TW_TUPLE, TW_LIST, TW_DICT, TW_RECORD } tw_structure_kind_t;

typedef struct tw_structure {
  tw_structure_kind_t kind;
  PyObject *like;  /* owned: what tells it from others of its kind */
  PyObject *names; /* owned tuple of a dict or record, else NULL */
  PyObject *parts; /* owned tuple */
  PyObject *forms; /* borrowed: of a record's parts */
} tw_structure_t;

tw_structure_kind_t tw_structure_kind(const call_t *call, PyObject *object);
/* Takes an object of a kind other than TW_LEAF apart. 0, or -1 with an exception and nothing to close. */
int tw_structure_open(const call_t *call, PyObject *object, tw_structure_t *out);
void tw_structure_close(tw_structure_t *structure);
/* A form is what annotations say of an argument or a part of one: None is nothing, True that it is a constant, an int
 * which extents and strides of an array are (as the word behind one with STATIC_WORD), a tuple
 * has the form of each part, a list the form of all. Whether it is one for so many parts: 0, or -1 with an exception.
 */
int tw_structure_check_form(const tw_structure_t *structure, PyObject *form);
/* Of a part, by that of the structure; borrowed. */
PyObject *tw_structure_form(const tw_structure_t *structure, PyObject *form, Py_ssize_t i);
/* Puts the place of a part, as in "[2]", in front of a path; keeps the pending exception. */
void tw_structure_name(const tw_structure_t *structure, Py_ssize_t i, PyObject **path);
/* Names of all leaves; new list, or NULL with an exception. */
PyObject *tw_structure_leaves(const dispatcher_t *self, PyObject *arguments);
/* Its key word. 0, or -1 with an exception. */
int tw_structure_word(dispatcher_t *self, const tw_structure_t *structure, uint64_t *out);
/* Whether a key word may be that of the structure. */
bool tw_structure_is(const tw_structure_t *structure, uint64_t word);
/* What on_miss is told of it; `parts`, a tuple of what it is told of them, is taken. */
PyObject *tw_structure_describe(const tw_structure_t *structure, PyObject *parts);

/* --- table.c ----------------------------------------------------------------------------------- */

/* The variant for a call's key, a new reference, or NULL without an exception. */
tw_variant_t *tw_table_find(dispatcher_t *self, const call_t *call);
/* Adds one, unless another thread has; the oldest may have to go. The one that is there, a new reference; NULL with
 * MemoryError set. */
tw_variant_t *tw_table_insert(dispatcher_t *self, const call_t *call, PyObject *variant, PyObject *target,
                              PyObject *key);
void tw_table_clear(dispatcher_t *self);
/* The same, and forgets what was watched, if it is still `watched`. */
void tw_table_clear_stale(dispatcher_t *self, PyObject *watched);
/* [(target, key, kernel)]; new reference, or NULL with an exception. */
PyObject *tw_table_rows(dispatcher_t *self);
/* What on_miss is told: the target's name, and one tuple a parameter (values of constants from the arguments). */
PyObject *tw_key_target(uint64_t word);
PyObject *tw_key_describe(const call_t *call, PyObject *arguments);
/* Writes the extents of all arrays (TW_MAX_WORDS at most), returns how many. */
size_t tw_key_extents(const call_t *call, uint64_t *out);

/* --- tuned.c ----------------------------------------------------------------------------------- */

/* What is launched in the place of a kernel, for arguments like those of an earlier launch. */
typedef struct tw_tuned_row {
  PyObject *owner;        /* owned: what was launched, if it stands over the kernel; NULL: the kernel itself */
  PyObject *kernel;       /* owned dispatcher: the kernel with other hints; NULL: itself */
  PyObject *constants;    /* owned tuple of (position, value) */
  PyObject *code, *picks; /* owned or NULL: of the grid's function, and where its arguments come from */
  size_t count, key_count;
  uint64_t words[]; /* `count` of the launch as it was given; `key_count` of the key of the one in its place */
} tw_tuned_row_t;

/* The fields of a row as Python gives them, borrowed; None where there is none. */
typedef struct tw_tuned_choice {
  PyObject *owner, *kernel, *constants, *code, *picks;
} tw_tuned_choice_t;

/* The words that tell launches apart, TW_TUNED_WORDS at most: key, extents and device. Returns how many. */
enum { TW_TUNED_WORDS = KEY_WORDS + TW_MAX_WORDS + 1 };
size_t tw_tuned_words(const call_t *call, uint64_t *out);
/* Turns a call to what its row says, `out` (owned, but `owner`); false where there is none, or none for a grid that is
 * a function. */
bool tw_tuned_turn(call_t *call, const PyObject *owner, bool by_function, tw_tuned_choice_t *out);
/* `tuned`: the launch in the place of the one that was given. 0, or -1 with an exception. */
int tw_tuned_insert(dispatcher_t *self, const call_t *given, const call_t *tuned, const tw_tuned_choice_t *choice);
void tw_tuned_clear(dispatcher_t *self);
int tw_tuned_traverse(dispatcher_t *self, visitproc visit, void *arg);
/* The arguments with these constants; new tuple. */
PyObject *tw_tuned_arguments(PyObject *constants, PyObject *arguments);
/* What a function says of the grid; new reference. The choice must live on while Python code runs. */
PyObject *tw_tuned_grid(tw_state_t *state, const tw_tuned_choice_t *choice, PyObject *grid, PyObject *arguments);

#endif
