/** The offsets of the rows of a list. A row that was never measured counts with the usual height. */
export class RowHeights {
  #usual = 40
  #sizes = new Float64Array(0)
  #starts = new Float64Array(1)
  /** The offsets are computed up to this row. */
  #valid = 0
  /** Measured heights other than the usual one, by the key of the row. */
  #odd = new Map<string, number>()
  #keyOf: (index: number) => string = String

  get count(): number {
    return this.#sizes.length
  }

  get total(): number {
    return this.start(this.count)
  }

  /** Sets other rows, or more of them; measured heights stay with their rows, wherever they are now. */
  fit(count: number, keyOf: (index: number) => string): void {
    this.#keyOf = keyOf
    this.#sizes = new Float64Array(count).fill(this.#usual)
    if (this.#odd.size > 0)
      for (let index = 0; index < count; index++)
        this.#sizes[index] = this.#odd.get(keyOf(index)) ?? this.#usual
    this.#starts = new Float64Array(count + 1)
    this.#valid = 0
  }

  /** Forgets all measured heights, as after a change of the width. */
  forget(usual: number): void {
    this.#usual = usual
    this.#odd.clear()
    this.fit(this.count, this.#keyOf)
  }

  set(index: number, size: number): void {
    if (this.#sizes[index] === size || index >= this.count) return
    this.#sizes[index] = size
    this.#odd.set(this.#keyOf(index), size)
    this.#valid = Math.min(this.#valid, index)
  }

  start(index: number): number {
    if (index > this.#valid) {
      for (let row = this.#valid; row < this.count; row++)
        this.#starts[row + 1] = (this.#starts[row] as number) + (this.#sizes[row] as number)
      this.#valid = this.count
    }
    return this.#starts[index] as number
  }

  /** The row at this offset, or the nearest one. */
  at(offset: number): number {
    let [low, high] = [0, Math.max(0, this.count - 1)]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.start(middle) <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}
