import { type Signal, signal } from '@preact/signals'
import { cellLabel } from '../copy/cells.ts'
import { client, type Output } from './client.ts'

export type Label = Output<'actor_lookup'>['actors'][number]

/** Undefined: still loading; null: removed, never existed, or not visible to the reader. */
type Known<T> = Signal<T | null | undefined>

const most = 50

/** Names by id; those on screen are loaded together. */
class Names<T> {
  readonly #load: (ids: string[]) => Promise<ReadonlyMap<string, T> | undefined>
  readonly #known = new Map<string, Known<T>>()
  readonly #shown = new Set<string>()
  #wanted = new Set<string>()

  /** `load` resolves to undefined if it failed. */
  constructor(load: (ids: string[]) => Promise<ReadonlyMap<string, T> | undefined>) {
    this.#load = load
  }

  of(id: string): Known<T> {
    let name = this.#known.get(id)
    if (!name) {
      name = signal<T | null | undefined>(undefined, {
        watched: () => this.#shown.add(id),
        unwatched: () => this.#shown.delete(id),
      })
      this.#known.set(id, name)
      this.#want(id)
    }
    return name
  }

  /** Loads those on screen again, and the others when they are next drawn. */
  renew(): void {
    for (const id of this.#known.keys())
      if (this.#shown.has(id)) this.#want(id)
      else this.#known.delete(id)
  }

  forget(): void {
    this.#known.clear()
    this.#shown.clear()
  }

  #want(id: string): void {
    this.#wanted.add(id)
    if (this.#wanted.size === 1) setTimeout(() => this.#ask())
  }

  async #ask(): Promise<void> {
    const all = [...this.#wanted]
    this.#wanted = new Set()
    for (let start = 0; start < all.length; start += most) {
      const ids = all.slice(start, start + most)
      const found = await this.#load(ids)
      for (const id of ids) {
        const name = this.#known.get(id)
        if (found && name) name.value = found.get(id) ?? null
        // A failed name is loaded again when the page is next drawn from scratch.
        else if (name?.peek() === undefined) this.#known.delete(id)
      }
    }
  }
}

const actors = new Names<Label>(async (ids) => {
  const tried = await client.try.actor_lookup({ ids })
  return tried.ok ? new Map(tried.result.actors.map((one) => [one.id, one])) : undefined
})
/** Loads cells without their data. */
const cells = new Names<string>(async (ids) => {
  const tried = await client.try.cell_list({ ids })
  return tried.ok ? new Map(tried.result.cells.map((one) => [one.id, cellLabel(one)])) : undefined
})

export const labelOf = (id: string): Known<Label> => actors.of(id)
export const cellLabelOf = (id: string): Known<string> => cells.of(id)

/** The answers of these methods are outdated. Names are not queries, so they are renewed here. */
export function renewNames(methods: readonly string[]): void {
  if (methods.includes('actor_lookup')) actors.renew()
  if (methods.includes('cell_list')) cells.renew()
}

/** Another account may see other names. */
export function forgetNames(): void {
  actors.forget()
  cells.forget()
}
