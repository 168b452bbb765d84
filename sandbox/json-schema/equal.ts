import { isObject } from '../json-value.ts';

/** True if two JSON values are equal: order counts in arrays, not in objects. */
export function isEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => isEqual(item, right[index]));
  }
  if (!isObject(left) || !isObject(right)) return false;
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isEqual(left[name], right[name]))
  );
}

/** True if no two items of the array are equal. */
export function isUnique(items: readonly unknown[]): boolean {
  return items.every((item, index) => !items.slice(0, index).some((earlier) => isEqual(item, earlier)));
}
