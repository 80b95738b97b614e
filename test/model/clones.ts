import assert from 'node:assert/strict'
import { type Model, type ModelCell, mayView, visibleEdges, type Who } from './access.ts'
import { edgesOfOthers } from './rows.ts'
import type { Stage } from './stage.ts'
import { newCell } from './world.ts'

/** The cells that a clone copies: the source and, in a deep clone, all that visible edges lead to from there. */
function copied(model: Model, who: Who, source: ModelCell, deep: boolean): ModelCell[] {
  const cells = new Set([source])
  if (!deep || !mayView(model, who, source)) return [source]
  // Iterating a set includes what is added on the way.
  for (const cell of cells)
    for (const edges of [cell.fields, cell.items])
      for (const [, far] of visibleEdges(model, who, edges)) cells.add(far)
  return [...cells]
}

export const cloneSize = (model: Model, who: Who, source: ModelCell, deep: boolean): number =>
  copied(model, who, source, deep).length

/**
 * Adds a clone to the model. It finds the ids of the new cells by walking the stored and the expected edges side
 * by side, which also checks that they match.
 */
export async function applyClone(
  { test }: Stage,
  model: Model,
  who: Who,
  { source, copy_id, deep }: { source: ModelCell; copy_id: string; deep: boolean },
): Promise<void> {
  const sources = copied(model, who, source, deep)
  const known = model.cells.map(({ id }) => id)
  const stored = await edgesOfOthers(test.service.app.db, known)
  const copies = new Map([[source, copyOf(source, who, copy_id)]])
  for (const [from, copy] of copies)
    for (const what of ['fields', 'items'] as const) {
      const edges = visibleEdges(model, who, from[what])
      const rows = stored[what].filter(({ near }) => near === copy.id)
      assert.deepEqual(
        rows.map(({ key }) => key).sort(),
        edges.map(([key]) => key),
        `the ${what} of a clone of ${from.id}`,
      )
      for (const [key, far] of edges) {
        const { far: far_id } = rows.find((row) => row.key === key) as (typeof rows)[number]
        if (deep && !copies.has(far)) copies.set(far, copyOf(far, who, far_id))
        const end = deep ? (copies.get(far) as ModelCell) : far
        assert.equal(far_id, end.id, `${what} ${key} of a clone of ${from.id}`)
        copy[what].set(key, end)
      }
    }
  assert.equal(copies.size, sources.length, 'the cells of a clone')
  assert.equal(
    new Set([...known, ...[...copies.values()].map(({ id }) => id)]).size,
    known.length + copies.size,
  )
  model.cells.push(...copies.values())
}

const copyOf = ({ visibility, kind }: ModelCell, who: Who, id: string): ModelCell => ({
  ...newCell(id),
  owner: who,
  visibility,
  kind,
})
