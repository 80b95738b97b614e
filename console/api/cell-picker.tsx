import { useRef } from 'preact/hooks'
import { cells } from '../copy/cells.ts'
import { Picker } from '../ui/picker.tsx'
import { sought } from './find.ts'
import { cellFinder } from './find-cells.ts'

/** Finds a cell by its path, by words in its name, or takes an id. */
export function CellPicker(props: { label: string; value: string; onChange(id: string): void }) {
  const finder = useRef<ReturnType<typeof cellFinder> | null>(null)
  const find = (text: string, signal: AbortSignal) => {
    // Begins anew each time the field is entered.
    if (!text || !finder.current) finder.current = cellFinder()
    const cellsLike = finder.current
    return sought(async () => {
      const found = await cellsLike(text, signal)
      return found.map(({ id, label, path, kind }) => ({
        id,
        label,
        about: [path, kind].filter(Boolean).join(' · '),
      }))
    })
  }
  return <Picker {...props} find={find} placeholder={cells.find_cell} none={cells.no_cell_found} beginsOpen />
}
