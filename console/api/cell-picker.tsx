import { useRef } from 'preact/hooks'
import { cellLabel, cells, soughtMax } from '../copy/cells.ts'
import { type Found, Picker } from '../ui/picker.tsx'
import { call } from './client.ts'
import { acting } from './session.ts'

/**
 * Finds a cell by the beginning of its path, or takes an id. The server searches by nothing else, so words are looked
 * for among the most recently changed cells.
 */
export function CellPicker(props: { label: string; value: string; onChange(id: string): void }) {
  const last = useRef<Promise<Found[]> | null>(null)
  const find = async (text: string, signal: AbortSignal): Promise<Found[]> => {
    if (text.startsWith('/')) return list({ path_prefix: text, limit: 8 }, signal).catch(() => [])
    // Read once each time the field is entered.
    if (!text || !last.current) last.current = list({ order_by: 'updated_at', limit: soughtMax })
    const word = text.toLowerCase()
    const all = await last.current.catch(() => [])
    return all.filter(({ label, about }) => `${label}\n${about ?? ''}`.toLowerCase().includes(word))
  }
  return <Picker {...props} find={find} placeholder={cells.find_cell} beginsOpen />
}

/** Only the names of what is read are kept. */
async function list(input: object, signal?: AbortSignal): Promise<Found[]> {
  const { cells } = await call('cell_list', input, acting.peek(), signal)
  return cells.map((one) => ({
    id: one.id,
    label: cellLabel(one),
    about: [one.path, one.kind].filter(Boolean).join(' · '),
  }))
}
