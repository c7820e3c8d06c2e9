#include <stdexcept>
#include <string>
#include <vector>
struct Base { virtual ~Base() {} virtual int f(int) = 0; };
struct Derived : Base {
  std::string s;
  int f(int x) override { if (x < 0) throw std::runtime_error(s); return x + (int)s.size(); }
};
int use(const std::vector<int> &v) {
  Derived d;
  int t = 0;
  try { for (int i : v) t += d.f(i); } catch (std::exception &e) { t = -1; } catch (...) { throw; }
  return t;
}
Base *make() { return new Derived; }
