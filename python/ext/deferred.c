/* deferred.c - owners of arrays that a GPU still works on
 *
 * A launch returns before its kernel has run. An array of the CUDA Array Interface is only an address: its owner may
 * free it at once, and not in the order of a stream. So the launch keeps the owner until an event behind the kernel is
 * over, and looks for such events at the next launch with arrays of this kind, and when somebody waits for the device.
 */
#include "launch.h"
#include "lock.h"

#include <stdlib.h>

struct tw_deferred {
  tw_deferred_t *next; /* a launch before this one */
  tw_hold_t *holds;    /* owned */
  void *event;         /* owned */
  int device;
};

/* Takes what shall be kept out of a list. */
static tw_hold_t *take_kept(tw_hold_t **holds) {
  tw_hold_t *kept = NULL;
  for (tw_hold_t **at = holds; *at;) {
    tw_hold_t *hold = *at;
    if (!hold->until_done) {
      at = &hold->next;
      continue;
    }
    *at = hold->next;
    hold->next = kept;
    kept = hold;
  }
  return kept;
}

static void let_go(tw_deferred_t *entry) {
  tw_event_destroy(entry->device, entry->event);
  tw_hold_release(entry->holds);
  free(entry);
}

/* An event that cannot be asked, as one of a lost context, has nothing to wait for. */
static bool is_over(const tw_deferred_t *entry) {
  bool over;
  tw_status_t status = tw_event_is_over(entry->device, entry->event, &over);
  tw_status_free(status);
  return over || status;
}

/* Takes what is over out of the list. */
static tw_deferred_t *take_over(tw_state_t *state) {
  tw_deferred_t *over = NULL;
  TW_LOCK(state);
  for (tw_deferred_t **at = &state->deferred; *at;) {
    tw_deferred_t *entry = *at;
    if (!is_over(entry)) {
      at = &entry->next;
      continue;
    }
    *at = entry->next;
    entry->next = over;
    over = entry;
  }
  TW_UNLOCK(state);
  return over;
}

/* What is let go runs code of others, which may launch: entries leave the list first. */
void tw_ext_sweep(tw_state_t *state) {
  tw_deferred_t *over = take_over(state);
  while (over) {
    tw_deferred_t *next = over->next;
    let_go(over);
    over = next;
  }
}

void tw_ext_defer(tw_state_t *state, tw_hold_t **holds, int device, void *stream) {
  tw_ext_sweep(state);
  tw_hold_t *kept = take_kept(holds);
  if (!kept)
    return;
  /* A graph runs whenever somebody wants it to: whoever keeps it keeps its arrays. And an event of a capture must not
   * be asked: that would be the end of the capture. */
  if (tw_stream_captures(device, stream)) {
    tw_hold_release(kept);
    return;
  }
  tw_deferred_t *entry = calloc(1, sizeof *entry);
  void *event = NULL;
  tw_status_t status = tw_event_create(device, &event);
  if (!status)
    status = tw_event_record_on(device, event, stream);
  if (entry && !status) {
    TW_LOCK(state);
    *entry = (tw_deferred_t){.next = state->deferred, .holds = kept, .event = event, .device = device};
    state->deferred = entry;
    TW_UNLOCK(state);
    return;
  }
  tw_status_free(status); /* no event, no wait: as without this file */
  free(entry);
  if (event)
    tw_event_destroy(device, event);
  tw_hold_release(kept);
}

void tw_ext_drop_deferred(tw_state_t *state) {
  while (state->deferred) {
    tw_deferred_t *next = state->deferred->next;
    tw_hold_release(state->deferred->holds);
    free(state->deferred);
    state->deferred = next;
  }
}
