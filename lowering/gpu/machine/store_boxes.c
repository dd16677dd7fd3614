/* store_boxes.c - a tile in registers as boxes that the tensor memory accelerator stores. See store_boxes.h. */
#include "lowering/gpu/machine/store_boxes.h"

enum { LINE_BITS = 8 * 128 };

typedef struct {
  const tw_layout_t *tile;
  int log_extent[TW_LAYOUT_MAX_RANK]; /* of a box */
  uint32_t mask;                      /* flat indices within the first box */
  uint32_t covered;                   /* that some bit of a position reaches */
} box_search_t;

static bool is_single(uint32_t image) { return image != 0 && (image & (image - 1)) == 0; }

static void include(box_search_t *s, uint32_t image) {
  for (int d = 0; d < s->tile->rank; d++) {
    uint32_t at = tw_layout_coord(s->tile, image, d);
    if (at != 0 && tw_log2(at) >= s->log_extent[d])
      s->log_extent[d] = tw_log2(at) + 1;
  }
}

/* A box holds all that the lanes of four warps own in one register, and lines as long as they may be. */
static bool find_extents(box_search_t *s, int inner, int elem_bits) {
  int line = tw_log2(LINE_BITS / elem_bits);
  for (int i = 0; i < s->tile->bits[TW_LANE]; i++)
    include(s, s->tile->basis[TW_LANE][i]);
  for (int i = 0; i < TW_STORE_GROUP_WARP_BITS; i++)
    include(s, s->tile->basis[TW_WARP][i]);
  if (s->log_extent[inner] > line)
    return false;
  s->log_extent[inner] = line < s->tile->log_shape[inner] ? line : s->tile->log_shape[inner];
  for (int d = 0; d < s->tile->rank; d++)
    s->mask |= ((UINT32_C(1) << s->log_extent[d]) - 1) << tw_layout_dim_shift(s->tile, d);
  return true;
}

/* Takes one bit of a position into the box; false if it has no place of its own there. */
static bool take(box_search_t *s, tw_store_boxes_t *out, tw_input_t input, uint32_t image) {
  uint32_t coord[TW_LAYOUT_MAX_RANK];
  if (!is_single(image) || (image & ~s->mask) != 0 || (image & s->covered) != 0)
    return false;
  s->covered |= image;
  for (int d = 0; d < s->tile->rank; d++)
    coord[d] = tw_layout_coord(s->tile, image, d);
  tw_layout_push(&out->box, input, tw_layout_flat(&out->box, coord));
  return true;
}

static bool take_registers(box_search_t *s, tw_store_boxes_t *out) {
  for (int i = 0; i < s->tile->bits[TW_REGISTER]; i++) {
    uint32_t image = s->tile->basis[TW_REGISTER][i];
    if (is_single(image) && (image & s->mask) == 0) {
      out->outside[out->num_outside] = i;
      out->step[out->num_outside++] = image;
    } else {
      out->inside[out->box.bits[TW_REGISTER]] = i;
      if (!take(s, out, TW_REGISTER, image))
        return false;
    }
  }
  return true;
}

/* The number of the group moves nothing within a box. */
static bool take_group(box_search_t *s, tw_store_boxes_t *out, uint32_t image) {
  out->group[out->group_bits++] = image;
  tw_layout_push(&out->box, TW_WARP, 0);
  return is_single(image) && (image & s->mask) == 0;
}

static bool take_threads(box_search_t *s, tw_store_boxes_t *out) {
  for (int i = 0; i < s->tile->bits[TW_LANE]; i++)
    if (!take(s, out, TW_LANE, s->tile->basis[TW_LANE][i]))
      return false;
  for (int i = 0; i < s->tile->bits[TW_WARP]; i++) {
    uint32_t image = s->tile->basis[TW_WARP][i];
    if (i < TW_STORE_GROUP_WARP_BITS ? !take(s, out, TW_WARP, image) : !take_group(s, out, image))
      return false;
  }
  return true;
}

bool tw_store_boxes_of(const tw_layout_t *tile, int inner, int elem_bits, tw_store_boxes_t *out) {
  box_search_t s = {.tile = tile};
  *out = (tw_store_boxes_t){.num_outside = 0};
  if (inner < 0 || tile->bits[TW_WARP] < TW_STORE_GROUP_WARP_BITS || tile->bits[TW_BLOCK] != 0 ||
      !find_extents(&s, inner, elem_bits))
    return false;
  for (int d = 0; d < tile->rank; d++)
    out->shape[d] = INT64_C(1) << s.log_extent[d];
  out->box = tw_layout_empty(tile->rank, out->shape);
  return take_registers(&s, out) && take_threads(&s, out) && s.covered == s.mask;
}

int tw_store_boxes_register(const tw_store_boxes_t *boxes, int number, int r) {
  int all = 0;
  for (int i = 0; i < boxes->num_outside; i++)
    all |= (number >> i & 1) << boxes->outside[i];
  for (int i = 0; i < boxes->box.bits[TW_REGISTER]; i++)
    all |= (r >> i & 1) << boxes->inside[i];
  return all;
}

uint32_t tw_store_boxes_start(const tw_store_boxes_t *boxes, int number) {
  uint32_t at = 0;
  for (int i = 0; i < boxes->num_outside; i++)
    at |= number >> i & 1 ? boxes->step[i] : 0;
  return at;
}
