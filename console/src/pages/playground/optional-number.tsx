import { NumberField } from '../../components/number-field.tsx';

/** An optional number; left out, the vendor's default applies. */
export function OptionalNumber(props: {
  label: string;
  value: number | '';
  onChange: (value: number | '') => void;
  min: number;
  max?: number;
  step?: number;
  isWhole?: boolean;
}) {
  const { isWhole = false, ...field } = props;
  return <NumberField placeholder="usual" step={1} allowDecimal={!isWhole} {...field} />;
}
