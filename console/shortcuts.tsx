import { isAdmin } from './api/session.ts'
import { keys } from './copy/common.ts'
import { isHelpOpen, shortcuts, singleKeys } from './keys.ts'
import { nav } from './routes.ts'
import { Dialog } from './ui/dialog.tsx'
import { Checkbox } from './ui/field.tsx'

const Row = ({ label, shown }: { label: string; shown: readonly string[] }) => (
  <div class="shortcut">
    <dt>{label}</dt>
    <dd>
      {shown.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </dd>
  </div>
)

/** The list that `?` opens. */
export const Shortcuts = () => (
  <Dialog title={keys.title} onClose={() => void (isHelpOpen.value = false)}>
    <Checkbox
      label={keys.single}
      checked={singleKeys.value !== 'off'}
      onChange={(isOn) => void (singleKeys.value = isOn ? '' : 'off')}
    />
    <dl class="shortcuts">
      {nav
        .filter((one) => !one.admin || isAdmin.value)
        .map(({ label, letter }) => (
          <Row key={letter} label={`${keys.go} ${label}`} shown={['g', letter]} />
        ))}
      {shortcuts.map(({ id, label, keys }) => (
        <Row key={id} label={label} shown={keys} />
      ))}
    </dl>
  </Dialog>
)
