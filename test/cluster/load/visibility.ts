import type { World } from '../world.ts'
import { outcomeOf } from './cells.ts'

/** Public cells become private or are deleted; from then on no node shows them to strangers; I5. */
export function visibilityLoad(world: World) {
  const { fleet, violate } = world
  const count = { hidden: 0, hidden_probes: 0 }
  const owner = world.client({ token: world.adaToken, keyed: true })

  const hide = async (isGone: boolean): Promise<void> => {
    const { cell } = await owner.cell_create({ data: { hidden: isGone }, visibility: 'public' })
    const { id } = cell
    if (isGone) await owner.cell_delete({ cell_id: id })
    else await owner.cell_update({ cell_id: id, visibility: 'private' })
    count.hidden += 1
    const asked = fleet.nodes.filter(({ isUp }) => isUp)
    await Promise.all(
      asked.map(async (node) => {
        const stranger = world.client({ expects: [401, 403, 404], node })
        const [read, list] = await Promise.all([
          stranger.try.cell_get({ id }),
          stranger.try.cell_list({ visibility: 'public', limit: 20 }),
        ])
        count.hidden_probes += 1
        if (read.ok || (list.ok && list.result.cells.some((one) => one.id === id)))
          violate('I5', `${node.name} showed the cell ${id} to a stranger`)
      }),
    )
  }
  let turn = 0
  world.loop(1, () =>
    hide(turn++ % 2 === 0).catch((error) => {
      outcomeOf(error)
    }),
  )
  return { check: async (): Promise<void> => {}, summary: () => count }
}
