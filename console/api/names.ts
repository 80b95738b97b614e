import { type Signal, signal } from '@preact/signals'
import { client, type Output } from './client.ts'

export type Label = Output<'actor_lookup'>['actors'][number]
/** Undefined: asked for; null: removed, or never there. */
type Known = Signal<Label | null | undefined>

const known = new Map<string, Known>()
let wanted: string[] = []

/** The label of an actor, asked for with those of its neighbours on screen. */
export function labelOf(id: string): Known {
  let label = known.get(id)
  if (!label) {
    label = signal(undefined)
    known.set(id, label)
    wanted.push(id)
    if (wanted.length === 1) setTimeout(ask)
  }
  return label
}

/** Another account may see other names. */
export const forgetNames = (): void => known.clear()

const most = 50

async function ask(): Promise<void> {
  const all = wanted
  wanted = []
  for (let start = 0; start < all.length; start += most) {
    const ids = all.slice(start, start + most)
    const tried = await client.try.actor_lookup({ ids })
    // A failure is asked again when the page is next drawn from nothing.
    if (!tried.ok) for (const id of ids) known.delete(id)
    else
      for (const id of ids) {
        const label = known.get(id)
        if (label) label.value = tried.result.actors.find((one) => one.id === id) ?? null
      }
  }
}
