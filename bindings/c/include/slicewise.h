/*
 * Slicewise decides who gets which part of which GPU, and proves it.
 *
 * This header is generated from the library: `cargo xtask header`. docs/c.md explains it with examples.
 *
 * Statuses. Calls that can fail return a slicewise_status: SLICEWISE_STATUS_OK, or the number of a code, the same in
 * every surface of Slicewise. A refused request is no failure: the call is OK and the verdict says no. Outputs are
 * written on success only, but for the length that SLICEWISE_STATUS_BUFFER_TOO_SMALL tells.
 *
 * Pointers. Handles are null or from their _new call and not freed yet. Texts that the library takes are UTF-8 and end
 * with a NUL; they are not kept after the call. A null pointer gives SLICEWISE_STATUS_NULL_POINTER, unless the call
 * says what null means. What a call gives through `char **` belongs to the caller, who frees it with
 * slicewise_string_free; what is lent (slicewise_text, last_error) stays for as long as the call says.
 *
 * Structures begin with `struct_size`, which the caller sets to the sizeof of the structure; fields that are added
 * later read as zero from older programs. Set the rest to zero first: `slicewise_request r = { .struct_size = sizeof r };`
 *
 * Threads. A handle is used by one thread at a time. A second call at the same time is refused with
 * SLICEWISE_STATUS_HANDLE_BUSY; only _free must not meet a running call. Different handles are independent. The
 * library has no threads, no global state, and touches neither files nor the environment.
 *
 * Panics. A fault of the library gives SLICEWISE_STATUS_PANICKED and never unwinds into the caller. The handle is
 * poisoned then: every later call gives SLICEWISE_STATUS_POISONED, and all that is left is to free it.
 *
 * All calls exist since version 0.1.0 and are stable within one SLICEWISE_ABI_VERSION.
 */

#ifndef SLICEWISE_H
#define SLICEWISE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Statuses: the table of codes of Slicewise.
 */
enum {
  /** The call did what it says. */
  SLICEWISE_STATUS_OK = 0,
  /** The fleet has no GPU at all. */
  SLICEWISE_STATUS_NO_GPUS = 100,
  /** The GPU's model or mode does not offer what is asked. */
  SLICEWISE_STATUS_PROFILE_NOT_OFFERED = 101,
  /** The GPU is not in a mode that can serve this. */
  SLICEWISE_STATUS_MODE_MISMATCH = 102,
  /** A whole GPU is asked of one that is cut into instances. */
  SLICEWISE_STATUS_PARENT_PARTITIONED = 103,
  /** The model is not among those the request allows. */
  SLICEWISE_STATUS_MODEL_NOT_ALLOWED = 104,
  /** The driver is older than the profile needs. */
  SLICEWISE_STATUS_DRIVER_TOO_OLD = 105,
  /** Placements of the profile are not known for this GPU. */
  SLICEWISE_STATUS_PLACEMENTS_UNKNOWN = 106,
  /** The GPU's memory is not known and the request asks memory. */
  SLICEWISE_STATUS_MEMORY_UNKNOWN = 107,
  /** The GPU's mode isolates less than the request accepts. */
  SLICEWISE_STATUS_ISOLATION_TOO_WEAK = 108,
  /** The request asks confidential computing of a GPU where it is off. */
  SLICEWISE_STATUS_CONFIDENTIAL_OFF = 109,
  /** The GPU takes no new work because of its health. */
  SLICEWISE_STATUS_GPU_UNHEALTHY = 110,
  /** The GPU or its node is cordoned. */
  SLICEWISE_STATUS_CORDONED = 111,
  /** The node does not meet the node requirements. */
  SLICEWISE_STATUS_NODE_SELECTOR = 112,
  /** The GPU would have to change its mode, and something is on it. */
  SLICEWISE_STATUS_MODE_OCCUPIED = 113,
  /** Fewer free cells or compute slices than asked. */
  SLICEWISE_STATUS_INSUFFICIENT_SLICES = 120,
  /** Enough free cells and compute slices, no legal start. */
  SLICEWISE_STATUS_FRAGMENTED = 121,
  /** The instances of the GPU leave too few media engines. */
  SLICEWISE_STATUS_ENGINES_EXHAUSTED = 122,
  /** The GPU holds the most instances of the profile. */
  SLICEWISE_STATUS_MAX_INSTANCES = 123,
  /** The driver refuses the profile beside one that is there. */
  SLICEWISE_STATUS_REFUSED_TOGETHER = 124,
  /** The GPU holds shares of another type. */
  SLICEWISE_STATUS_LOCKED_TO_OTHER_TYPE = 125,
  /** All shares of the GPU are taken. */
  SLICEWISE_STATUS_SHARES_EXHAUSTED = 126,
  /** The MPS server takes no more client contexts. */
  SLICEWISE_STATUS_CLIENTS_EXHAUSTED = 127,
  /** Less compute left than the fraction asks. */
  SLICEWISE_STATUS_INSUFFICIENT_FRACTION = 130,
  /** Less memory left than the fraction or the whole GPU asks. */
  SLICEWISE_STATUS_INSUFFICIENT_MEMORY = 131,
  /** The GPU is not wholly free. */
  SLICEWISE_STATUS_GPU_IN_USE = 132,
  /** The node has fewer wholly free GPUs than asked. */
  SLICEWISE_STATUS_TOO_FEW_GPUS = 133,
  /** The instances asked for do not fit together on the node or GPU. */
  SLICEWISE_STATUS_INSTANCES_DO_NOT_FIT = 134,
  /** The node has too little CPU left. */
  SLICEWISE_STATUS_NODE_CPU = 140,
  /** The node has too little memory left. */
  SLICEWISE_STATUS_NODE_MEMORY = 141,
  /** The node would draw more than its power cap. */
  SLICEWISE_STATUS_POWER_CAP_NODE = 142,
  /** The rack would draw more than its power cap. */
  SLICEWISE_STATUS_POWER_CAP_RACK = 143,
  /** A lease on the node and the request keep away from each other. */
  SLICEWISE_STATUS_ANTI_AFFINITY = 150,
  /** The free GPUs are not joined as asked. */
  SLICEWISE_STATUS_TOPOLOGY = 151,
  /** No offered fabric partition of that size is free. */
  SLICEWISE_STATUS_FABRIC_PARTITION = 152,
  /** No free GPUs near enough to a network adapter. */
  SLICEWISE_STATUS_NIC_DISTANCE = 153,
  /** Members fit one by one but not as they must lie to each other. */
  SLICEWISE_STATUS_MEMBER_SPREAD = 154,
  /** Some members fit, not all. */
  SLICEWISE_STATUS_GANG_INCOMPLETE = 160,
  /** Moves would make room, more than the budget of moves allows. */
  SLICEWISE_STATUS_MOVES_EXCEEDED = 161,
  /** The work budget ended the search. */
  SLICEWISE_STATUS_BUDGET_EXHAUSTED = 190,
  /** What a decision relied on has changed since. */
  SLICEWISE_STATUS_CONFLICT = 500,
  /** No lease of that name. */
  SLICEWISE_STATUS_UNKNOWN_LEASE = 501,
  /** The change cannot be undone: something later built on it. */
  SLICEWISE_STATUS_UNDO_BLOCKED = 502,
  /** The checker refused what the engine made: a fault of Slicewise. */
  SLICEWISE_STATUS_VERIFICATION_FAILED = 503,
  /** Only an admitting decision can be committed. */
  SLICEWISE_STATUS_NOT_ADMITTED = 504,
  /** A pointer is null that must not be. */
  SLICEWISE_STATUS_NULL_POINTER = 600,
  /** A text is not UTF-8. */
  SLICEWISE_STATUS_NOT_UTF8 = 601,
  /** A structure has a size that no version has, or sets a field that this one does not know. */
  SLICEWISE_STATUS_WRONG_STRUCT_SIZE = 602,
  /** An earlier call on the handle panicked; all that is left is to free it. */
  SLICEWISE_STATUS_POISONED = 603,
  /** The call panicked: a fault of Slicewise. */
  SLICEWISE_STATUS_PANICKED = 604,
  /** The buffer is too small; the length that is needed was written. */
  SLICEWISE_STATUS_BUFFER_TOO_SMALL = 605,
  /** Another call on the handle is running. */
  SLICEWISE_STATUS_HANDLE_BUSY = 606,
  /** The decision was made by another engine, or on a state that was replaced. */
  SLICEWISE_STATUS_FOREIGN_HANDLE = 607,
  /** The handle holds nothing yet. */
  SLICEWISE_STATUS_EMPTY_HANDLE = 608,
  /** A text cannot be read as the document that it should be. */
  SLICEWISE_STATUS_UNREADABLE = 609,
  /** The model is in no catalog and no document. */
  SLICEWISE_STATUS_UNKNOWN_MODEL = 901,
  /** The profile name is in no catalog and in no device listing. */
  SLICEWISE_STATUS_UNKNOWN_PROFILE = 902,
  /** The profile exists but has no such start on this device. */
  SLICEWISE_STATUS_UNKNOWN_PLACEMENT = 903,
  /** The device's profile has no published placements. */
  SLICEWISE_STATUS_UNKNOWN_PLACEMENTS = 904,
  /** The model cannot be in this mode. */
  SLICEWISE_STATUS_MODE_NOT_OFFERED = 905,
  /** Two things claim the same space. */
  SLICEWISE_STATUS_OVERLAP = 906,
  /** A name is used twice. */
  SLICEWISE_STATUS_DUPLICATE = 907,
  /** A name that must exist does not. */
  SLICEWISE_STATUS_UNKNOWN_NAME = 908,
  /** A number is out of its range. */
  SLICEWISE_STATUS_OUT_OF_RANGE = 909,
  /** The document breaks a rule that has no narrower name. */
  SLICEWISE_STATUS_INVALID = 910,
  /** A GPU is under a power limit or cap and its watts are not known. */
  SLICEWISE_STATUS_UNKNOWN_POWER = 911
};

/**
 * The version of this interface. It grows when a call or a structure changes its meaning or goes;
 * new calls and new fields at the end of a structure leave it as it is.
 */
#define SLICEWISE_ABI_VERSION 1

/**
 * No GPU, where an index of one stands.
 */
#define SLICEWISE_NONE UINT32_MAX

/**
 * The answer to a request.
 */
enum slicewise_verdict
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Placed.
   */
  SLICEWISE_VERDICT_ADMIT = 0,
  /**
   * Not now; the request asked to queue.
   */
  SLICEWISE_VERDICT_WAIT = 1,
  /**
   * No.
   */
  SLICEWISE_VERDICT_REJECT = 2,
  /**
   * The work budget ended before an answer.
   */
  SLICEWISE_VERDICT_UNDECIDED = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum slicewise_verdict slicewise_verdict;
#else
typedef uint32_t slicewise_verdict;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a request asks for.
 */
enum slicewise_ask
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * `profile`: a MIG profile, a compute instance profile, a vGPU type, a replica, a partition.
   */
  SLICEWISE_ASK_PROFILE = 0,
  /**
   * `milli` thousandths of a GPU and `gpu_memory_mib` of its memory.
   */
  SLICEWISE_ASK_FRACTION = 1,
  /**
   * `gpus` whole GPUs of one node.
   */
  SLICEWISE_ASK_GPUS = 2,
  /**
   * `threads_percent`, `gpu_memory_mib` and `contexts` under CUDA MPS.
   */
  SLICEWISE_ASK_MPS = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum slicewise_ask slicewise_ask;
#else
typedef uint32_t slicewise_ask;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What of a GPU a placement has.
 */
enum slicewise_part
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * No GPU: only the node's CPU and memory.
   */
  SLICEWISE_PART_NODE_ONLY = 0,
  /**
   * All of the GPU.
   */
  SLICEWISE_PART_WHOLE = 1,
  /**
   * A GPU instance, or a vGPU among several sizes: `profile`, `start`, `size`.
   */
  SLICEWISE_PART_INSTANCE = 2,
  /**
   * A compute instance, or a vGPU, inside a GPU instance: besides `compute_profile`, `compute_start`.
   */
  SLICEWISE_PART_COMPUTE = 3,
  /**
   * A share of type `profile`.
   */
  SLICEWISE_PART_SHARE = 4,
  /**
   * A fraction: `milli`, `gpu_memory_mib`, `contexts`.
   */
  SLICEWISE_PART_FRACTION = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum slicewise_part slicewise_part;
#else
typedef uint32_t slicewise_part;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a batch is planned for.
 */
enum slicewise_objective
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The most value admitted.
   */
  SLICEWISE_OBJECTIVE_MOST_VALUE = 0,
  /**
   * As many members as possible, then the fewest GPUs.
   */
  SLICEWISE_OBJECTIVE_FEWEST_GPUS = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum slicewise_objective slicewise_objective;
#else
typedef uint32_t slicewise_objective;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Bits of `flags` in a request.
 */
enum slicewise_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Others may be moved to make room.
   */
  SLICEWISE_FLAG_ALLOW_MOVES = 1,
  /**
   * May itself not be moved once placed.
   */
  SLICEWISE_FLAG_PINNED = 2,
  /**
   * Leave idle instances as they are.
   */
  SLICEWISE_FLAG_KEEP_IDLE = 4,
  /**
   * What cannot be placed now waits instead of being refused.
   */
  SLICEWISE_FLAG_QUEUE = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum slicewise_flag slicewise_flag;
#else
typedef uint32_t slicewise_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A request with the decision on it. Made once and used for any number of decisions, one after the other; as many
 * as there are may wait to be committed. One thread at a time.
 */
typedef struct slicewise_decision slicewise_decision;

/**
 * A fleet with what runs on it. One thread at a time; different engines are independent.
 */
typedef struct slicewise_engine slicewise_engine;

/**
 * A text that the library lends: UTF-8, `length` bytes, no NUL at its end. The call that gives it says how
 * long it stays. An empty text has length 0.
 */
typedef struct {
  /**
   * The first byte.
   */
  const char *data;
  /**
   * How many bytes.
   */
  size_t length;
} slicewise_text;

/**
 * What became of a call: `SLICEWISE_OK`, or a number of the table of codes. A request that is
 * refused is no failure: the call is then `SLICEWISE_OK` and the verdict says no.
 */
typedef int32_t slicewise_status;
/**
 * Done.
 */
#define slicewise_status_OK 0

/**
 * A request. Set `struct_size`, `name` and what is asked; everything that is left zero is not asked.
 */
typedef struct {
  /**
   * `sizeof(slicewise_request)`.
   */
  size_t struct_size;
  /**
   * Unique name; the lease will have it.
   */
  const char *name;
  /**
   * Whose it is, or null.
   */
  const char *tenant;
  /**
   * The only node that it may go to, or null.
   */
  const char *node;
  /**
   * For `SLICEWISE_ASK_PROFILE`: the name; else null.
   */
  const char *profile;
  /**
   * CPU that each member takes on its node, thousandths of a core.
   */
  uint64_t cpu_milli;
  /**
   * Memory that each member takes on its node, MiB.
   */
  uint64_t memory_mib;
  /**
   * A `slicewise_ask`: what each member gets.
   */
  uint32_t ask;
  /**
   * Members, all of which are placed or none; 0 is 1.
   */
  uint32_t count;
  /**
   * For a fraction: thousandths of a GPU's compute.
   */
  uint32_t milli;
  /**
   * For a fraction, for MPS and for whole GPUs: least memory of the GPU in MiB; 0: not counted.
   */
  uint32_t gpu_memory_mib;
  /**
   * For whole GPUs: how many.
   */
  uint32_t gpus;
  /**
   * For MPS: active-thread percentage.
   */
  uint32_t threads_percent;
  /**
   * For MPS: client contexts; 0 is 1.
   */
  uint32_t contexts;
  /**
   * Bits of `slicewise_flag`.
   */
  uint32_t flags;
} slicewise_request;

/**
 * A decision in short.
 */
typedef struct {
  /**
   * `sizeof(slicewise_summary)`, set by the caller.
   */
  size_t struct_size;
  /**
   * The version of the state that it was made on.
   */
  uint64_t version;
  /**
   * A `slicewise_verdict`.
   */
  uint32_t verdict;
  /**
   * The number of the first reason; 0 if there is none.
   */
  slicewise_status reason;
  /**
   * 1 if the placement passed the checker, or the "no" is proved; else 0.
   */
  uint32_t proved;
  /**
   * How many placements there are.
   */
  uint32_t placements;
  /**
   * How many reasons there are.
   */
  uint32_t reasons;
  /**
   * How many leases' parts are moved to make room.
   */
  uint32_t moves;
} slicewise_summary;

/**
 * What one member has, and where.
 */
typedef struct {
  /**
   * `sizeof(slicewise_placement)`, set by the caller.
   */
  size_t struct_size;
  /**
   * Name of the node.
   */
  slicewise_text node;
  /**
   * UUID of the GPU; empty if not known.
   */
  slicewise_text uuid;
  /**
   * Profile of the instance, or type of the share; empty for other kinds.
   */
  slicewise_text profile;
  /**
   * Profile of the compute instance; empty for other kinds.
   */
  slicewise_text compute_profile;
  /**
   * Position of the member in its request, from 0.
   */
  uint32_t member;
  /**
   * Index of the GPU on the node, or `SLICEWISE_NONE`.
   */
  uint32_t gpu;
  /**
   * A `slicewise_part`: which of the fields below say something; the others are 0.
   */
  uint32_t kind;
  /**
   * First cell of the instance; the placement id of a vGPU.
   */
  uint32_t start;
  /**
   * Cells covered by the instance.
   */
  uint32_t size;
  /**
   * First slice inside the instance.
   */
  uint32_t compute_start;
  /**
   * Thousandths of the GPU's compute.
   */
  uint32_t milli;
  /**
   * Memory of the GPU in MiB; 0 where it is not counted.
   */
  uint32_t gpu_memory_mib;
  /**
   * Client contexts on an MPS server.
   */
  uint32_t contexts;
  /**
   * 0.
   */
  uint32_t reserved;
} slicewise_placement;

/**
 * An engine in numbers.
 */
typedef struct {
  /**
   * `sizeof(slicewise_info)`, set by the caller.
   */
  size_t struct_size;
  /**
   * The version of the state; each change adds one.
   */
  uint64_t version;
  /**
   * Nodes.
   */
  uint64_t nodes;
  /**
   * GPUs.
   */
  uint64_t gpus;
  /**
   * Leases.
   */
  uint64_t leases;
} slicewise_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the interface that the library has; compare it with `SLICEWISE_ABI_VERSION`.
 */
uint32_t slicewise_abi_version(void);

/**
 * The version of the library, `MAJOR.MINOR.PATCH`. Static.
 */
slicewise_text slicewise_version(void);

/**
 * The state as a JSON document; loading it gives the same state. `*out` is freed with `slicewise_string_free`.
 */
slicewise_status slicewise_engine_snapshot(slicewise_engine *engine,
                                           char **out);

/**
 * Decides requests (JSON, YAML or CSV), each on the state that the ones before it leave, and says what would help;
 * the state of the engine stays as it is. As `slicewise decide --json`. `*out` is freed with `slicewise_string_free`.
 */
slicewise_status slicewise_engine_decide_json(slicewise_engine *engine,
                                              const char *requests,
                                              char **out);

/**
 * Says what keeps each request out and what would help. As `slicewise explain --json`. `*out` is freed with
 * `slicewise_string_free`.
 */
slicewise_status slicewise_engine_explain_json(slicewise_engine *engine,
                                               const char *requests,
                                               char **out);

/**
 * Plans a batch of requests at once, for a `slicewise_objective`. As `slicewise plan --json`. `*out` is freed with
 * `slicewise_string_free`.
 */
slicewise_status slicewise_engine_plan_json(slicewise_engine *engine,
                                            const char *requests,
                                            uint32_t objective,
                                            char **out);

/**
 * Takes the leases of a plan, as `slicewise_engine_plan_json` gave it, all or none. `version`, if not null, gets the
 * new version of the state.
 */
slicewise_status slicewise_engine_adopt_json(slicewise_engine *engine,
                                             const char *plan,
                                             uint64_t *version);

/**
 * Makes an admitting decision true, given the request and the decision as `slicewise_engine_decide_json` gave it for
 * that request alone. `SLICEWISE_STATUS_CONFLICT`, and nothing changed, if what it relied on has changed since.
 * `version`, if not null, gets the new version of the state.
 */
slicewise_status slicewise_engine_commit_json(slicewise_engine *engine,
                                              const char *request,
                                              const char *decision,
                                              uint64_t *version);

/**
 * A handle for decisions. Null only if memory ran out.
 */
slicewise_decision *slicewise_decision_new(void);

/**
 * Frees a decision; no call on it may be running. Null is nothing.
 */
void slicewise_decision_free(slicewise_decision *decision);

/**
 * Decides a request; the state stays as it is. `decision` gets the decision in the place of the one that it held;
 * `summary`, if not null, gets it in short. A placement has passed the checker.
 */
slicewise_status slicewise_engine_decide(slicewise_engine *engine,
                                         const slicewise_request *request,
                                         slicewise_decision *decision,
                                         slicewise_summary *summary);

/**
 * Placement `index`, from 0, of an admitting decision. Its texts are lent until the decision is made anew or freed.
 * `SLICEWISE_STATUS_OUT_OF_RANGE` after the last one.
 */
slicewise_status slicewise_decision_placement(slicewise_decision *decision,
                                              uint32_t index,
                                              slicewise_placement *placement);

/**
 * Reason `index`, from 0, in one line for people, written to `buffer` of `capacity` bytes with a NUL. `length`, if
 * not null, gets the length without the NUL, also with `SLICEWISE_STATUS_BUFFER_TOO_SMALL`, when nothing else is
 * written; `buffer` may be null if `capacity` is 0. `SLICEWISE_STATUS_OUT_OF_RANGE` after the last reason.
 */
slicewise_status slicewise_decision_reason(slicewise_decision *decision,
                                           uint32_t index,
                                           char *buffer,
                                           size_t capacity,
                                           size_t *length);

/**
 * Makes an admitting decision true. `SLICEWISE_STATUS_CONFLICT`, and nothing changed, if what it relied on has
 * changed since: decide again. `version`, if not null, gets the new version of the state.
 */
slicewise_status slicewise_engine_commit(slicewise_engine *engine,
                                         slicewise_decision *decision,
                                         uint64_t *version);

/**
 * Takes back a commit whose GPUs nothing has touched since. `version`, if not null, gets the new version.
 */
slicewise_status slicewise_engine_undo(slicewise_engine *engine,
                                       slicewise_decision *decision,
                                       uint64_t *version);

/**
 * An engine without a state. Null only if memory ran out.
 */
slicewise_engine *slicewise_engine_new(void);

/**
 * Frees an engine; no call on it may be running. Null is nothing.
 */
void slicewise_engine_free(slicewise_engine *engine);

/**
 * What the last call on the engine said when it failed; empty if it did not. Lent until the next call on the
 * engine. Never null.
 */
const char *slicewise_engine_last_error(slicewise_engine *engine);

/**
 * Loads a state document, JSON or YAML, in the place of what the engine held. On failure it keeps what it held.
 */
slicewise_status slicewise_engine_load(slicewise_engine *engine,
                                       const char *state);

/**
 * The engine in numbers.
 */
slicewise_status slicewise_engine_query(slicewise_engine *engine, slicewise_info *info);

/**
 * Placement `index`, from 0, of a lease. Its texts are lent until the next call on the engine.
 * `SLICEWISE_STATUS_UNKNOWN_LEASE` if there is no lease of that name, `SLICEWISE_STATUS_OUT_OF_RANGE` after the
 * last placement.
 */
slicewise_status slicewise_engine_placement(slicewise_engine *engine,
                                            const char *lease,
                                            uint32_t index,
                                            slicewise_placement *placement);

/**
 * Ends a lease. `version`, if not null, gets the new version of the state.
 */
slicewise_status slicewise_engine_release(slicewise_engine *engine,
                                          const char *lease,
                                          uint64_t *version);

/**
 * The stable name of a status, `insufficient_slices`; empty if there is none of that number. Static.
 */
slicewise_text slicewise_status_name(slicewise_status status);

/**
 * What a status means, in one sentence; empty if there is none of that number. Static.
 */
slicewise_text slicewise_status_text(slicewise_status status);

/**
 * Frees a text that the library gave. Null is nothing.
 *
 * # Safety
 * `text` is null, or from a call that gives texts, and not freed yet.
 */
void slicewise_string_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SLICEWISE_H */
