import { randomUUID } from 'node:crypto'
import { CellkeepError, type Client } from '../../../src/client/client.ts'
import { on } from '../../helpers/twins.ts'
import { allRows, type World } from '../world.ts'

/** `none`: the service reported that nothing was changed. */
export type Outcome = 'done' | 'none' | 'unknown'
export type Written = {
  call: string
  began: number
  outcome: Outcome
  keyed: boolean
  id?: string | undefined
}

/** What an error says about the outcome of a mutation without a key. */
export function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof CellkeepError)) throw error
  if (error.reason === 'transport_failed' || error.status === 504) return 'unknown'
  return error.status === 503 ? (error.data.outcome as Outcome) : 'none'
}

/** Creates cells, with and without keys, and changes other cells again and again. */
export function cellLoad(world: World) {
  const written: Written[] = []
  /** The last acknowledged version of each cell that is changed. */
  const versions = new Map<string, number>()
  const { violate, adaToken: token } = world

  const create = async (client: Client, keyed: boolean): Promise<void> => {
    const call = randomUUID()
    const began = performance.now()
    const note = (outcome: Outcome, id?: string): void =>
      void written.push({ call, began, outcome, keyed, id })
    try {
      note('done', (await client.cell_create({ data: { call } })).cell.id)
    } catch (error) {
      const outcome = outcomeOf(error)
      if (outcome === undefined) violate('I8', `a mutation was refused without an outcome: ${error}`)
      if (keyed && !world.isOver)
        violate('I2', `a call with a key was not resolved by repeating it: ${error}`)
      note(outcome ?? 'unknown')
    }
  }

  const keyless = world.client({ token })
  const { writers } = world
  let turn = 0
  for (let n = 0; n < 3; n++) {
    world.loop(2, () => create(writers[turn++ % writers.length] as Client, true))
    world.loop(2, () => create(keyless, false))
    const story = changing(world, versions)
    world.loop(2, story)
  }

  /** Compares every call that has ended by now with the tables; I1, I2, I3. */
  const check = async (): Promise<void> => {
    const [calls, known] = [[...written], new Map(versions)]
    const rows = await on(
      world.engine.primary.url,
      'set search_path = cellkeep',
      // Takes the snapshot first: a statement does not see a partition that is created after its planning began.
      'begin isolation level repeatable read',
      'select',
      `with audited as (
        select metadata->>'cell_id' as id, count(*) filter (where event_type = 'cell_create')::int as made,
          count(*) filter (where event_type = 'cell_update')::int as changed
        from ${allRows} entries where event_type in ('cell_create', 'cell_update') and outcome = 'success' group by 1)
      select coalesce(cell.id::text, audited.id) as id, version, data->>'call' as call,
        coalesce(made, 0) as made, coalesce(changed, 0) as changed
      from cell full join audited on audited.id = cell.id::text`,
    )
    const cells = new Map<string, string[]>()
    for (const { id, version, call, made, changed } of rows) {
      cells.set(call, [...(cells.get(call) ?? []), id])
      if (made !== 1 || changed !== (version ?? 1) - 1)
        violate(
          'I3',
          `cell ${id} of version ${version} has ${made} rows of its creation, ${changed} of changes`,
        )
      const acknowledged = known.get(id)
      if (acknowledged !== undefined && version < acknowledged)
        violate('I1', `cell ${id} is at version ${version}, ${acknowledged} was acknowledged`)
    }
    for (const { call, outcome, keyed, id } of calls) {
      const found = cells.get(call) ?? []
      if (outcome === 'done' && !found.includes(id as string)) violate('I1', `the cell ${id} is lost`)
      if (found.length > 1) violate('I2', `the call ${call} (keyed: ${keyed}) made ${found.length} cells`)
      if (outcome === 'none' && found.length > 0)
        violate('I2', `the call ${call} was refused, yet made a cell`)
    }
  }
  return {
    written,
    check,
    summary: () => ({
      acknowledged: written.filter(({ outcome }) => outcome === 'done').length,
      unknown: written.filter(({ outcome }) => outcome === 'unknown').length,
      versions: [...versions.values()].reduce((sum, version) => sum + version - 1, 0),
    }),
  }
}

/** Changes one cell under its `expected_version`, and reads it back from whichever node is next; I7. */
function changing(world: World, versions: Map<string, number>): () => Promise<void> {
  const client = world.client({ token: world.adaToken })
  let at: { id: string; version: number } | undefined
  return async () => {
    try {
      if (!at) {
        const { cell } = await client.cell_create({
          data: { call: randomUUID(), n: 0 },
          visibility: 'public',
        })
        at = cell
        versions.set(cell.id, 1)
        return
      }
      const { id, version } = at
      const { cell } = await client.cell_update({
        ...{ cell_id: id, expected_version: version },
        data_patch: { n: version },
      })
      at.version = cell.version
      versions.set(id, cell.version)
    } catch (error) {
      outcomeOf(error)
    }
    if (!at) return
    const least = versions.get(at.id) as number
    const read = await client.try.cell_get({ id: at.id })
    if (!read.ok) return
    const { version } = read.result.cell
    if (version < least)
      world.violate('I7', `cell ${at.id} was read at version ${version} after ${least} was acknowledged`)
    at.version = version
  }
}
