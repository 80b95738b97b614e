import { useSignal } from '@preact/signals'
import { CellkeepError } from '../../src/client/client.ts'
import { call, type Output, type Refusal } from '../api/client.ts'
import { editRows, noticeEnd, refresh, spoil } from '../api/query.ts'
import { acting, sameAccount } from '../api/session.ts'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { between } from '../lib/position.ts'
import { toast } from '../ui/toast.tsx'

export type Item = Output<'cell_item_list'>['items'][number]
type Gap = { low: string | null; high: string | null }

const changed = ['cell_item_list', 'cell_get', 'cell_audit_list'] as const

/** Max tries if somebody else's item, or one that the reader may not see, has the place. */
const triesMax = 3

/** Writes at a position in the gap; a position that is already taken bounds the next try. */
async function place(gap: Gap, write: (position: string) => Promise<unknown>): Promise<string> {
  let { high } = gap
  for (let tries = 0; ; tries++) {
    const position = between(gap.low, high)
    if (position === null) throw new CellkeepError('cell_item_move', 'no_room', 0, {})
    try {
      await write(position)
      return position
    } catch (error) {
      const isTaken = error instanceof CellkeepError && error.reason === 'cell_item_position_taken'
      if (!isTaken || tries === triesMax) throw error
      high = position
    }
  }
}

/**
 * Changes of the items of a cell: shown at once, and written one after the other. After each one a short list is read
 * again; a long one stays, because reading only its beginning would take the rest away.
 */
export function useItemChanges(parent_id: string) {
  const error = useSignal<Refusal | null>(null)
  const last = useSignal(Promise.resolve())
  const show = (change: (items: Item[]) => Item[]): void =>
    editRows('cell_item_list', { parent_id }, 'items', change)
  const run = (write: () => Promise<unknown>, said?: () => void): void => {
    const isOwn = sameAccount()
    last.value = last.peek().then(async () => {
      error.value = null
      try {
        await write()
        if (!isOwn()) return
        said?.()
        refresh(changed)
      } catch (thrown) {
        if (!(thrown instanceof CellkeepError)) throw thrown
        if (!isOwn()) return
        noticeEnd(thrown)
        error.value = thrown
        spoil(...changed)
      }
    })
  }
  const insert = (child_id: string, gap: Gap): Promise<string> =>
    place(gap, (position) => call('cell_item_insert', { parent_id, child_id, position }, acting.peek()))
  const moveTo = (position: string, gap: Gap): Promise<string> =>
    place(gap, (new_position) => call('cell_item_move', { parent_id, position, new_position }, acting.peek()))
  /** Shows an item at the position that it has got. */
  const settle = (item: Item, position: string, shown: string | null): void =>
    show((items) =>
      [...items.filter((one) => one.position !== shown), { ...item, position }].toSorted((a, b) =>
        a.position < b.position ? -1 : 1,
      ),
    )
  return {
    error: error.value,
    append: (child_id: string, low: string | null) => insert(child_id, { low, high: null }),
    /** The position at which it is shown until the service has answered. */
    move(rows: readonly Item[], from: number, to: number): string | null {
      const item = rows[from] as Item
      const others = rows.toSpliced(from, 1)
      const gap = gapAt(others, to)
      const shown = between(gap.low, gap.high)
      if (shown) show(() => others.toSpliced(to, 0, { ...item, position: shown }))
      let position: string
      run(
        async () => {
          position = await moveTo(item.position, gap)
          settle(item, position, shown ?? item.position)
        },
        () =>
          toast(cells.moved(to + 1, rows.length), {
            label: words.undo,
            run: () => run(async () => settle(item, await moveTo(position, gapAt(others, from)), position)),
          }),
      )
      return shown
    },
    remove(rows: readonly Item[], at: number): void {
      const item = rows[at] as Item
      const others = rows.toSpliced(at, 1)
      show(() => others)
      run(
        () => call('cell_item_delete', { parent_id, position: item.position }, acting.peek()),
        () =>
          toast(cells.relation_removed, {
            label: words.undo,
            run: () => run(async () => settle(item, await putBack(item, gapAt(others, at)), null)),
          }),
      )
    },
  }

  /** Puts it back where it was, if that place is free. Resolves to the place that it got. */
  async function putBack({ child_id, position }: Item, gap: Gap): Promise<string> {
    try {
      await call('cell_item_insert', { parent_id, child_id, position }, acting.peek())
      return position
    } catch (error) {
      if (!(error instanceof CellkeepError) || error.reason !== 'cell_item_position_taken') throw error
      return insert(child_id, gap)
    }
  }
}

const gapAt = (items: readonly Item[], at: number): Gap => ({
  low: items[at - 1]?.position ?? null,
  high: items[at]?.position ?? null,
})
