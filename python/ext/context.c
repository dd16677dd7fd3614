/* context.c - contexts that serve one module after the other
 *
 * To make a context, load its dialects and destroy it again takes as long as to compile a small kernel. So a few are
 * kept. What a context has made unique it never forgets: after some modules it is destroyed nevertheless.
 *
 * They are the process's, and change under the GIL, which all interpreters that import us share (module.c). A context
 * is of one module, and so of one thread, at a time. */
#include "ext.h"

#include "tilewright/compiler.h"

enum {
  MOST_KEPT = 4, /* one for each thread that compiles, in most programs */
  MOST_USES = 16
};

static struct {
  MlirContext context; /* null: a free place */
  int uses;
  bool taken;
} kept[MOST_KEPT];

MlirContext tw_ext_context_take(void) {
  int empty = -1;
  for (int i = 0; i < MOST_KEPT; i++) {
    if (mlirContextIsNull(kept[i].context))
      empty = i;
    else if (!kept[i].taken) {
      kept[i].taken = true;
      kept[i].uses++;
      return kept[i].context;
    }
  }
  MlirContext context = tw_context_create();
  if (empty >= 0) {
    kept[empty].context = context;
    kept[empty].uses = 1;
    kept[empty].taken = true;
  }
  return context;
}

void tw_ext_context_give(MlirContext context) {
  for (int i = 0; i < MOST_KEPT; i++)
    if (mlirContextEqual(kept[i].context, context)) {
      kept[i].taken = false;
      if (kept[i].uses < MOST_USES)
        return;
      kept[i].context = (MlirContext){NULL};
    }
  mlirContextDestroy(context);
}
