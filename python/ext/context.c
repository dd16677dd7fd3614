/* context.c - contexts that serve one module after the other
 *
 * To make a context, load its dialects and destroy it again takes as long as to compile a small kernel. So a few are
 * kept. What a context has made unique it never forgets: after some modules it is destroyed nevertheless.
 *
 * They are the process's. A context is of one module, and so of one thread, at a time. */
#include "ext.h"

#include "tilewright/compiler.h"

#include <pthread.h>

enum {
  MOST_KEPT = 4, /* one for each thread that compiles, in most programs */
  MOST_USES = 16
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct {
  MlirContext context; /* null: a free place */
  int uses;
  bool taken;
} kept[MOST_KEPT];

/* One that is kept and free; a null context where there is none. */
static MlirContext take_kept(void) {
  for (int i = 0; i < MOST_KEPT; i++)
    if (!mlirContextIsNull(kept[i].context) && !kept[i].taken) {
      kept[i].taken = true;
      kept[i].uses++;
      return kept[i].context;
    }
  return (MlirContext){NULL};
}

/* If there is a place. */
static void keep(MlirContext context) {
  for (int i = 0; i < MOST_KEPT; i++)
    if (mlirContextIsNull(kept[i].context)) {
      kept[i].context = context;
      kept[i].uses = 1;
      kept[i].taken = true;
      return;
    }
}

/* Whether it stays. */
static bool put_back(MlirContext context) {
  for (int i = 0; i < MOST_KEPT; i++)
    if (mlirContextEqual(kept[i].context, context)) {
      kept[i].taken = false;
      if (kept[i].uses < MOST_USES)
        return true;
      kept[i].context = (MlirContext){NULL};
    }
  return false;
}

MlirContext tw_ext_context_take(void) {
  pthread_mutex_lock(&lock);
  MlirContext context = take_kept();
  pthread_mutex_unlock(&lock);
  if (!mlirContextIsNull(context))
    return context;
  context = tw_context_create();
  pthread_mutex_lock(&lock);
  keep(context);
  pthread_mutex_unlock(&lock);
  return context;
}

void tw_ext_context_give(MlirContext context) {
  pthread_mutex_lock(&lock);
  bool stays = put_back(context);
  pthread_mutex_unlock(&lock);
  if (!stays)
    mlirContextDestroy(context);
}
